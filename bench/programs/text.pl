# SPDX-License-Identifier: MIT
#
# Text and structures in Perl: counts the words of a text, rewrites it, indexes its lines, then builds and drops nested
# hashes. Perl counts references, so each scalar's text, each hash entry and each array is a malloc that is freed the
# moment it is out of use; only the heads of values come from arenas of its own.
#
#   perl text.pl corpus.txt
#
# Each part checks its own result and ends the program with 1 if it is wrong. Hashes are walked in sorted order, because
# Perl's own differs from run to run.
use strict;
use warnings;

sub check {
  my ($right, $what) = @_;
  return if $right;
  print STDERR "text.pl: $what\n";
  exit 1;
}

open(my $file, '<', $ARGV[0]) or die "text.pl: $ARGV[0]: $!\n";
my $text = do { local $/; <$file> };
close($file);

for (1 .. 9) {
  my %counts;
  $counts{$1}++ while $text =~ /([a-z]+)/g;
  my $total = 0;
  $total += $_ for values %counts;
  my $sum = 0;
  for my $entry (sort { $b->{key} cmp $a->{key} } map { { key => sprintf('%08d %s', $counts{$_}, $_), word => $_ } } keys %counts) {
    $sum += $counts{$entry->{word}};
  }
  check($sum == $total, 'words were lost in sorting');

  my $turned = join('', map { join(' ', reverse split(/ /, $_)) . "\n" } split(/\n/, $text));
  my $again = () = $turned =~ /[a-z]+/g;
  check($again == $total, 'words were lost in rewriting');

  my %lines;
  my $number = 0;
  for my $line (split(/\n/, $text)) {
    $number++;
    for my $word (split(/ /, $line)) {
      push @{ $lines{$word} }, $number if length($word) > 7;
    }
  }
  my $long = () = $text =~ /[a-z]{8,}/g;
  my $found = 0;
  $found += @{ $lines{$_} } for sort keys %lines;
  check($found == $long, 'lines were lost in the index');
}

sub tree {
  my ($depth) = @_;
  return {} if $depth == 0;
  return { left => tree($depth - 1), right => tree($depth - 1), name => "node at $depth" };
}

sub size {
  my ($node) = @_;
  return $node->{left} ? 1 + size($node->{left}) + size($node->{right}) : 1;
}

for my $depth (4 .. 13) {
  check(size(tree($depth)) == 2**($depth + 1) - 1, 'a tree lost a node') for 1 .. 2**(15 - $depth);
}
print length($text), "\n";
