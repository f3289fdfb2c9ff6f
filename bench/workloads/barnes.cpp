// SPDX-License-Identifier: MIT
//
// barnes: the motion of bodies under gravity, by an octree that is built from heap objects and dropped in every step.
//
// Imitates the Barnes program of the SPLASH suites and of the Hoard paper's benchmarks (E. Berger, K. McKinley,
// R. Blumofe, P. Wilson, "Hoard", ASPLOS 2000). The method: J. Barnes, P. Hut, "A hierarchical O(N log N)
// force-calculation algorithm", Nature 1986: a cell far away acts as its centre of mass. The start is a Plummer sphere
// (S. Aarseth, M. Henon, R. Wielen, 1974), the integrator a leapfrog.
//
// It allocates little for what it computes, as most programs do: it shows the allocator's placement (a tree that is
// walked many times) more than its speed, and it is the control that keeps a table of micro-benchmarks honest.
// Checked: the energy and the momentum at the end are those of the start, within what the method allows.
//
//   --bodies N (2 … 1000000; default 2000)
#include <cmath>

#include "live.h"

using namespace workload;

namespace {

constexpr double kOpening = 0.6;  // a cell seen under a smaller angle counts as one body
constexpr double kSoftening2 = 0.0025;
constexpr double kStep = 0.002;
constexpr unsigned kInLeaf = 4;
constexpr unsigned kDeepest = 100;

struct Vector {
  double x, y, z;
  Vector operator+(const Vector& o) const { return {x + o.x, y + o.y, z + o.z}; }
  Vector operator-(const Vector& o) const { return {x - o.x, y - o.y, z - o.z}; }
  Vector operator*(double f) const { return {x * f, y * f, z * f}; }
  double square() const { return x * x + y * y + z * z; }
};

struct Body {
  Vector at, speed, force;
  double mass;
};

// What leaves and cells begin with. `heavy` is the centre of mass once weigh() has been there.
struct Node {
  Vector heavy;
  double mass;
  bool is_leaf;
};
struct Leaf : Node {
  unsigned count;
  const Body* bodies[kInLeaf];
};
struct Cell : Node {
  double side;
  Node* child[8];
};

Live live;
std::uint64_t nodes;

template <class T>
T* make_node() {
  auto* node = static_cast<T*>(std::calloc(1, sizeof(T)));
  if (node == nullptr) fail("calloc returned NULL");
  live.add(sizeof(T));
  nodes++;
  return node;
}

Leaf* make_leaf() {
  Leaf* leaf = make_node<Leaf>();
  leaf->is_leaf = true;
  return leaf;
}

void drop_tree(Node* node) {
  if (node == nullptr) return;
  if (!node->is_leaf) {
    for (Node* child : static_cast<Cell*>(node)->child) drop_tree(child);
  }
  live.subtract(node->is_leaf ? sizeof(Leaf) : sizeof(Cell));
  std::free(node);
}

// Puts a body below `place`, the root of a cube of the given centre and side.
void insert(Node*& place, const Body* body, const Vector& middle, double side, unsigned depth) {
  if (depth > kDeepest) fail("barnes: two bodies are at one place");
  if (place == nullptr) place = make_leaf();
  if (place->is_leaf) {
    auto* leaf = static_cast<Leaf*>(place);
    if (leaf->count < kInLeaf) {
      leaf->bodies[leaf->count++] = body;
      return;
    }
    Cell* cell = make_node<Cell>();
    cell->side = side;
    place = cell;
    for (const Body* moved : leaf->bodies) insert(place, moved, middle, side, depth);
    drop_tree(leaf);
  }
  const int octant = (body->at.x >= middle.x) + 2 * (body->at.y >= middle.y) + 4 * (body->at.z >= middle.z);
  const double quarter = side / 4;
  const Vector centre = middle + Vector{(octant & 1) != 0 ? quarter : -quarter, (octant & 2) != 0 ? quarter : -quarter,
                                        (octant & 4) != 0 ? quarter : -quarter};
  insert(static_cast<Cell*>(place)->child[octant], body, centre, side / 2, depth + 1);
}

// Computes mass and centre of mass of all nodes, from the leaves up.
void weigh(Node* node) {
  Vector sum = {};
  if (node->is_leaf) {
    const auto* leaf = static_cast<Leaf*>(node);
    for (unsigned i = 0; i < leaf->count; i++) {
      sum = sum + leaf->bodies[i]->at * leaf->bodies[i]->mass;
      node->mass += leaf->bodies[i]->mass;
    }
  } else {
    for (Node* child : static_cast<Cell*>(node)->child) {
      if (child == nullptr) continue;
      weigh(child);
      sum = sum + child->heavy * child->mass;
      node->mass += child->mass;
    }
  }
  node->heavy = sum * (1 / node->mass);
}

Vector pull(const Vector& at, const Vector& from, double mass) {
  const Vector away = from - at;
  const double distance2 = away.square() + kSoftening2;
  return away * (mass / (distance2 * std::sqrt(distance2)));
}

Vector force_on(const Body& body, const Node* node) {
  Vector force = {};
  if (node->is_leaf) {
    const auto* leaf = static_cast<const Leaf*>(node);
    for (unsigned i = 0; i < leaf->count; i++)
      if (leaf->bodies[i] != &body) force = force + pull(body.at, leaf->bodies[i]->at, leaf->bodies[i]->mass);
    return force;
  }
  const auto* cell = static_cast<const Cell*>(node);
  if (cell->side * cell->side < kOpening * kOpening * (cell->heavy - body.at).square())
    return pull(body.at, cell->heavy, cell->mass);
  for (const Node* child : cell->child)
    if (child != nullptr) force = force + force_on(body, child);
  return force;
}

void compute_forces(Body* bodies, std::uint64_t count) {
  double reach = 0;
  for (std::uint64_t i = 0; i < count; i++)
    reach = std::fmax(
        reach, std::fmax(std::fabs(bodies[i].at.x), std::fmax(std::fabs(bodies[i].at.y), std::fabs(bodies[i].at.z))));
  Node* root = nullptr;
  for (std::uint64_t i = 0; i < count; i++) insert(root, &bodies[i], {}, 2 * reach + 1e-9, 0);
  weigh(root);
  for (std::uint64_t i = 0; i < count; i++) bodies[i].force = force_on(bodies[i], root);
  drop_tree(root);
}

void advance(Body* bodies, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; i++) {
    bodies[i].speed = bodies[i].speed + bodies[i].force * (kStep / 2);
    bodies[i].at = bodies[i].at + bodies[i].speed * kStep;
  }
  compute_forces(bodies, count);
  for (std::uint64_t i = 0; i < count; i++) bodies[i].speed = bodies[i].speed + bodies[i].force * (kStep / 2);
}

Vector direction(Random& random, double length) {
  const double z = 2 * random.unit() - 1;
  const double angle = 2 * 3.14159265358979323846 * random.unit();
  const double flat = std::sqrt(1 - z * z);
  return Vector{flat * std::cos(angle), flat * std::sin(angle), z} * length;
}

// Aarseth's recipe for a Plummer sphere of mass 1, cut off at radius 8.
void place_bodies(Body* bodies, std::uint64_t count, Random& random) {
  for (std::uint64_t i = 0; i < count; i++) {
    double radius = 9;
    while (radius > 8) radius = 1 / std::sqrt(std::pow(random.unit() + 1e-12, -2.0 / 3) - 1);
    double share = 0;
    for (double level = 1; level > share * share * std::pow(1 - share * share, 3.5);) {
      share = random.unit();
      level = random.unit() * 0.1;
    }
    const double speed = share * std::sqrt(2.0) * std::pow(1 + radius * radius, -0.25);
    bodies[i] = {direction(random, radius), direction(random, speed), {}, 1.0 / static_cast<double>(count)};
  }
}

double energy(const Body* bodies, std::uint64_t count) {
  double total = 0;
  for (std::uint64_t i = 0; i < count; i++) {
    total += 0.5 * bodies[i].mass * bodies[i].speed.square();
    for (std::uint64_t j = 0; j < i; j++)
      total -= bodies[i].mass * bodies[j].mass / std::sqrt((bodies[i].at - bodies[j].at).square() + kSoftening2);
  }
  return total;
}

Vector momentum(const Body* bodies, std::uint64_t count) {
  Vector total = {};
  for (std::uint64_t i = 0; i < count; i++) total = total + bodies[i].speed * bodies[i].mass;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto count = arguments.integer("bodies", 2000, 2, 1000000);
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("barnes", 1);
  auto* bodies = static_cast<Body*>(std::calloc(count, sizeof(Body)));
  if (bodies == nullptr) fail("calloc returned NULL");
  live.add(count * sizeof(Body));
  Random random(common.seed);
  place_bodies(bodies, count, random);
  const double energy_before = energy(bodies, count);
  const Vector momentum_before = momentum(bodies, count);
  const std::uint64_t steps = common.scaled(60);
  report.start();
  compute_forces(bodies, count);
  for (std::uint64_t i = 0; i < steps; i++) advance(bodies, count);
  report.stop();
  const double drift = std::fabs(energy(bodies, count) / energy_before - 1);
  const double moved = std::sqrt((momentum(bodies, count) - momentum_before).square());
  if (!(drift < 0.005)) fail("barnes: the energy was not conserved");
  if (!(moved < 0.005)) fail("barnes: the momentum was not conserved");
  report.operations = nodes;
  report.peak_live_bytes = live.most;
  report.extra("energy_drift", drift);
  report.extra("momentum_drift", moved);
  std::free(bodies);
  return report.print();
}
