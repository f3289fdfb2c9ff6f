-- SPDX-License-Identifier: MIT
--
-- Text and trees in Lua: counts the words of a text, rewrites it, sorts what it found, then builds and drops binary
-- trees. Lua takes every string, table and closure from realloc, one by one, and its collector frees them in sweeps, so
-- this is an interpreter's stream of small objects without a pool in between.
--
--   lua text.lua corpus.txt
--
-- Each part checks its own result and ends the program with 1 if it is wrong.

local function check(right, what)
  if not right then
    io.stderr:write("text.lua: ", what, "\n")
    os.exit(1)
  end
end

local function count_words(text)
  local counts, total = {}, 0
  for word in text:gmatch("%a+") do
    counts[word] = (counts[word] or 0) + 1
    total = total + 1
  end
  return counts, total
end

local function sorted_by_count(counts)
  local list = {}
  for word, count in pairs(counts) do
    list[#list + 1] = { word = word, count = count, key = string.format("%08d %s", count, word) }
  end
  table.sort(list, function(a, b) return a.key > b.key end)
  return list
end

local function rewrite(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do
    lines[#lines + 1] = line:gsub("(%a+) (%a+)", "%2 %1"):upper():lower()
  end
  return table.concat(lines, "\n") .. "\n"
end

local function tree(depth)
  if depth == 0 then return {} end
  return { tree(depth - 1), tree(depth - 1) }
end

local function size(node)
  return node[1] and 1 + size(node[1]) + size(node[2]) or 1
end

local file = assert(io.open(arg[1]))
local text = file:read("a")
file:close()

local counts, total = count_words(text)
local sum = 0
for _, entry in ipairs(sorted_by_count(counts)) do sum = sum + entry.count end
check(sum == total, "words were lost in sorting")

local again, total_again = count_words(rewrite(text))
check(total_again == total, "words were lost in rewriting")
for word, count in pairs(counts) do check(again[word] == count, "a word changed its count") end

for depth = 4, 16 do
  for _ = 1, 2 ^ (18 - depth) do check(size(tree(depth)) == 2 ^ (depth + 1) - 1, "a tree lost a node") end
end
print(total)
