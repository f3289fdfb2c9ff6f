#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# perl: hashes of arrays, string building, regular expressions, sorting, fork.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need perl
cat > "$work/program.pl" << 'PROGRAM'
use strict;
use warnings;
my ($library) = @ARGV;
open(my $maps, '<', '/proc/self/maps') or die;
die "not loaded\n" unless grep { index($_, $library) >= 0 } <$maps>;
my %lists;
for my $i (0 .. 199999) { push @{$lists{"key " . ($i * 7919 % 3001)}}, "value $i"; }
my $count = 0;
$count += scalar @{$lists{$_}} for sort keys %lists;
my $text = join(',', map { sprintf('%05d', $_ * 31 % 65536) } 0 .. 60000);
my $matches = () = $text =~ /\b0\d{3}[13579]\b/g;
my @sorted = sort { $a <=> $b } split(/,/, $text);
for my $n (1 .. 5) {
    my $child = fork() // die;
    if ($child == 0) { my %copy = %lists; delete @copy{grep { /1/ } keys %copy}; exit(scalar(keys %copy) > 0 ? 0 : 1); }
    waitpid($child, 0);
    die "child $n: $?\n" if $?;
}
print "$count $matches $sorted[0] $sorted[-1] ", length($text), "\n";
PROGRAM
expected=$(perl -pe 's/^die "not loaded.*//m' "$work/program.pl" > "$work/plain.pl" && perl "$work/plain.pl" none)
run() {
  equal "perl's answer" "$expected" "$(with_library perl "$work/program.pl" "$library")"
}
with_both_front_ends run
