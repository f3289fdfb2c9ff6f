#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bash: arrays, long strings, subshells, pipes and command substitution; it reads its own /proc/self/maps with a builtin,
# so that the proof comes from the very process.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

cat > "$work/script.bash" << 'SCRIPT'
declare -A words
text=""
for ((i = 0; i < 4000; ++i)); do
  words["key $((i * 7919 % 4000))"]=$i
  text+="line $i of a text that grows;"
done
sum=0
for key in "${!words[@]}"; do sum=$((sum + words[$key])); done
parts=()
IFS=';' read -ra parts <<< "$text"
in_subshells=0
for ((i = 0; i < 40; ++i)); do in_subshells=$((in_subshells + $(echo $((i * 2)) | { read -r x; echo "$x"; }))); done
loaded=no
while read -r line; do
  case $line in *"$1"*) loaded=yes ;; esac
done < /proc/self/maps
echo "$sum ${#parts[@]} ${#text} $in_subshells $loaded $(printf '%s\n' "${parts[@]}" | sort -r | head -n 1)"
SCRIPT
run() {
  equal "bash's answer" "7998000 4000 122890 1560 yes line 999 of a text that grows" \
    "$(with_library bash "$work/script.bash" "$library")"
}
with_both_front_ends run
