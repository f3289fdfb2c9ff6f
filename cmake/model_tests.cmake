# SPDX-License-Identifier: MIT
#
# The model check of the front end's slow paths: the protocols of src/slots, step by step, in every order
# (tests/model). It holds no code of the library, so one build is enough; the optimised one, as it counts states.

file(GLOB model_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/model/*.cpp)
if(model_sources)
  add_executable(slots_model_test ${model_sources})
  target_link_libraries(slots_model_test PRIVATE test_flags)
  target_include_directories(slots_model_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/model ${PROJECT_SOURCE_DIR}/src)
  register(NAME model.slots COMMAND slots_model_test LABELS model TIMEOUT 600)
endif()
