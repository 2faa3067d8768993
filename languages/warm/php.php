<?php
// Waits while php has opened the entry and not begun to read it, then fills it in. Prepended to the program by its
// configuration; a function without a name, so that it leaves none behind.
(static function () {
    unlink(__FILE__);
    $channel = fopen('php://fd/4', 'r+');
    fwrite($channel, 'r');
    $message = stream_socket_recvfrom($channel, 1 << 17);
    fclose($channel);
    // PHP opens a copy of the descriptor; only where it may call C functions can it close the first one.
    if (extension_loaded('FFI')) {
        FFI::cdef('int close(int);')->close(4);
    }
    if ($message === false || $message === '') {
        exit(0);
    }

    $start = strpos($message, "\n") + 1;
    $lengths = explode(' ', substr($message, 0, $start - 1));
    $item = static function () use (&$start, &$lengths, $message) {
        $length = (int) array_shift($lengths);
        $start += $length;
        return substr($message, $start - $length, $length);
    };
    $own = $_SERVER['argv'][0];
    foreach (['PWD', 'OLDPWD', 'SHLVL', '_'] as $name) { // of the shell that started this
        putenv($name);
        unset($_SERVER[$name]);
    }

    $item();
    $entry = $item();
    $argv = [$entry];
    for ($left = (int) $item(); $left > 0; $left--) {
        $argv[] = $item();
    }
    for ($left = (int) $item(); $left > 0; $left--) {
        $variable = $item();
        [$name, $value] = explode('=', $variable, 2);
        putenv($variable);
        $_SERVER[$name] = $value;
    }
    if ($entry !== $own) {
        unlink($own);
    }
    for ($left = (int) $item(); $left > 0; $left--) {
        $path = $item();
        $mode = octdec($item());
        if (!is_dir(dirname($path))) {
            mkdir(dirname($path), 0755, true);
        }
        file_put_contents($path, $item());
        chmod($path, $mode);
    }
    if ($entry !== $own) {
        // The options without the first, which named this file, and without the entry.
        $options = array_slice(explode("\0", rtrim(file_get_contents('/proc/self/cmdline'), "\0")), 3, -1);
        if (function_exists('pcntl_exec')) {
            pcntl_exec(PHP_BINARY, array_merge($options, $argv));
        }
        exit(proc_close(proc_open(array_merge([PHP_BINARY], $options, $argv), [STDIN, STDOUT, STDERR], $pipes)));
    }
    $_SERVER['argv'] = $GLOBALS['argv'] = $argv;
    $_SERVER['argc'] = $GLOBALS['argc'] = count($argv);
    $_SERVER['REQUEST_TIME_FLOAT'] = microtime(true);
    $_SERVER['REQUEST_TIME'] = (int) $_SERVER['REQUEST_TIME_FLOAT'];
    clearstatcache();
})();
