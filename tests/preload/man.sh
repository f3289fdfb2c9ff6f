#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# man: formats a page through groff, in the sandbox (seccomp) that man puts around it.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need man groff
cat > "$work/page.1" << 'PAGE'
.TH PAGE 1 "2020-01-01" "test" "User Commands"
.SH NAME
page \- a page to be formatted
.SH DESCRIPTION
.TP
.B \-x
A word that must survive: \fIbrimful\fR.
PAGE
for ((i = 0; i < 500; ++i)); do printf '.PP\nParagraph %d of a long page with a few words to fill its lines.\n' "$i"; done \
  >> "$work/page.1"
with_library man -P cat "$work/page.1" > "$work/output" 2> "$work/errors" || fail "man: $(cat "$work/errors")"
grep -q 'must survive: brimful' <(sed 's/.\x08//g' "$work/output") || fail "the page is wrong: $(head -n 20 "$work/output")"
grep -q 'Paragraph 499 of a long page' "$work/output" || fail "the page is cut"
equal "man's complaints" "" "$(cat "$work/errors")"
traced man -P cat "$work/page.1" > "$work/output.traced" 2> /dev/null || true
was_loaded_by man
