<?php
// SPDX-License-Identifier: MIT
//
// Records in PHP: decodes them, groups them by tag, sorts, encodes and serialises them. With USE_ZEND_ALLOC=0, as its
// manual says to use it under memory tools, each array, string and object is a malloc.
//
//   php records.php records.json
//
// Each part checks its own result and ends the program with 1 if it is wrong.
ini_set('memory_limit', '-1');

function check(bool $right, string $what): void {
    if ($right) return;
    fwrite(STDERR, "records.php: $what\n");
    exit(1);
}

$text = file_get_contents($argv[1]);
for ($round = 0; $round < 20; $round++) {
    $records = json_decode($text, true);
    $byTag = [];
    foreach ($records as $record) {
        foreach ($record['tags'] as $tag => $value) $byTag[$tag][] = [$value, $record['name'], $record['id']];
    }
    $count = 0;
    foreach ($byTag as $tag => $list) {
        sort($list);
        $count += count($list);
    }
    check($count === 4 * count($records), 'tags were lost');

    $words = [];
    foreach ($records as $record) {
        foreach (explode(' ', $record['note']) as $word) $words[$word] = ($words[$word] ?? 0) + 1;
    }
    ksort($words);
    $again = unserialize(serialize($records));
    check($again == $records, 'the records changed on their way');
    check(strlen(json_encode($records)) > strlen($text) / 2, 'the records were not written');
}
echo strlen($text), "\n";
