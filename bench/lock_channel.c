/* lock_channel send|receive FILE BITS ROUNDS: how fast two cells can talk by record locks on a file that both only
 * read. Run it in two cells at once, for example with /usr/bin/env, 1024 and 200. The sender locks a byte for each bit
 * that is set and then the byte that says "sent"; the receiver looks, and locks the byte that says "taken". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SENT, TAKEN, FIRST_BIT };

static int file;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void put(long place, bool on)
{
    struct flock lock = {.l_type = on ? F_RDLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
    fcntl(file, F_SETLK, &lock);
}

static bool see(long place)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
    fcntl(file, F_GETLK, &lock);
    return lock.l_type != F_UNLCK;
}

static void wait_for(long place, bool on)
{
    while (see(place) != on)
        ;
}

static void send_all(long bits, long rounds, unsigned seed)
{
    double begin = 0;
    for (long round = 0; round < rounds; round++) {
        for (long bit = 0; bit < bits; bit++)
            put(FIRST_BIT + bit, rand_r(&seed) & 1);
        put(SENT, !(round & 1));
        wait_for(TAKEN, !(round & 1));
        if (!round)
            begin = seconds(); /* the other one is there */
    }
    printf("%.0f bits a second\n", (double)((rounds - 1) * bits) / (seconds() - begin));
}

static void receive_all(long bits, long rounds, unsigned seed)
{
    long wrong = 0;
    for (long round = 0; round < rounds; round++) {
        wait_for(SENT, !(round & 1));
        for (long bit = 0; bit < bits; bit++)
            wrong += see(FIRST_BIT + bit) != (rand_r(&seed) & 1);
        put(TAKEN, !(round & 1));
    }
    printf("%ld bits wrong\n", wrong);
    usleep(200000); /* the sender has to see the last lock */
}

int main(int argc, char **argv)
{
    const unsigned seed = 7;
    if (argc != 5 || (file = open(argv[2], O_RDONLY)) < 0) {
        fputs("usage: lock_channel send|receive FILE BITS ROUNDS\n", stderr);
        return 2;
    }
    if (!strcmp(argv[1], "send"))
        send_all(atol(argv[3]), atol(argv[4]), seed);
    else
        receive_all(atol(argv[3]), atol(argv[4]), seed);
    return 0;
}
