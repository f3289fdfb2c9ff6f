// SPDX-License-Identifier: MIT
#include "stacks/control.h"

namespace brimful::observer::stacks {

bool find_control(const Session& session, std::uint64_t& control) {
  constexpr char kSymbol[] = "_ZN7brimful4meta14sample_controlE";
  const Modules& modules = session.modules();
  for (int i = 0; i < modules.count(); i++) {
    const Module* module = modules.module(i);
    std::uint64_t size = 0;
    if (module == nullptr || !module->symbol(kSymbol, control, size)) continue;
    control += modules.bias(i);
    return true;
  }
  return false;
}

}  // namespace brimful::observer::stacks
