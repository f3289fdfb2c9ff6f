// SPDX-License-Identifier: MIT
//
// A heap of glass and stone spheres on a chequered floor: the same picture on every machine, because the only random
// numbers have a seed.
#version 3.7;
global_settings { assumed_gamma 1 max_trace_level 6 }
camera { location <0, 7, -16> look_at <0, 2, 0> angle 50 }
light_source { <20, 30, -20> rgb 1 area_light <4, 0, 0>, <0, 0, 4>, 3, 3 adaptive 1 }
background { rgb <0.7, 0.8, 0.95> }
plane { y, 0 pigment { checker rgb 0.9 rgb 0.3 } finish { reflection 0.1 } }
#declare Seed = seed(7);
#declare Count = 0;
#while (Count < 900)
  #declare X = rand(Seed) * 14 - 7;
  #declare Z = rand(Seed) * 14 - 7;
  #declare Y = rand(Seed) * (6 - sqrt(X * X + Z * Z) / 2);
  sphere {
    <X, max(Y, 0.2), Z>, 0.15 + rand(Seed) * 0.35
    #if (mod(Count, 5) = 0)
      pigment { rgbt <0.9, 0.95, 1, 0.8> } finish { reflection 0.1 specular 0.6 } interior { ior 1.4 }
    #else
      pigment { granite color_map { [0 rgb <rand(Seed), rand(Seed), rand(Seed)>] [1 rgb 0.9] } scale 0.3 }
      normal { bumps 0.2 scale 0.1 } finish { specular 0.3 }
    #end
  }
  #declare Count = Count + 1;
#end
