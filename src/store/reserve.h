/* A file that keeps some of the disk for the day on which it is full: what is erased then has to be written first. */
#ifndef STORE_RESERVE_H
#define STORE_RESERVE_H

/* Makes it in the data directory if there is room, at most a small part of the file system. Nothing when there is none:
 * then only what fits into the log can be erased on a full disk. */
void reserve_make(int directory);
/* Gives its blocks back. */
void reserve_release(int directory);

#endif
