# SPDX-License-Identifier: MIT
#
# Text and objects in Ruby: counts the words of a text, rewrites it, groups its lines by symbols, then builds and drops
# nested arrays and hashes. Ruby's objects lie in pages of its own, 40 bytes each; what does not fit (longer strings,
# arrays, hashes) is a malloc, freed when the collector sweeps.
#
#   ruby text.rb corpus.txt
#
# Each part checks its own result and ends the program with 1 if it is wrong.

def check(right, what)
  return if right
  warn "text.rb: #{what}"
  exit 1
end

text = File.read(ARGV[0])
5.times do
  counts = Hash.new(0)
  text.scan(/[a-z]+/) { |word| counts[word] += 1 }
  total = counts.values.sum
  ranked = counts.map { |word, count| [format("%08d %s", count, word), word, count] }.sort.reverse
  check(ranked.sum { |entry| entry[2] } == total, "words were lost in sorting")

  turned = text.each_line.map { |line| line.split.reverse.join(" ") + "\n" }.join
  check(turned.scan(/[a-z]+/).size == total, "words were lost in rewriting")

  groups = text.each_line.group_by { |line| line[0, 2].to_sym }
  check(groups.values.sum(&:size) == text.count("\n"), "lines were lost in grouping")
end

def tree(depth)
  depth.zero? ? [] : [tree(depth - 1), tree(depth - 1), { depth: depth, name: "node at #{depth} of a tree of arrays" }]
end

def size(node)
  node.empty? ? 1 : 1 + size(node[0]) + size(node[1])
end

(4..14).each do |depth|
  (2**(17 - depth)).times { check(size(tree(depth)) == 2**(depth + 1) - 1, "a tree lost a node") }
end
puts text.size
