/* What systemd is told, and gives: readiness, and sockets it opened for us. */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=…". Nothing happens where nobody listens. */
void notify_tell(const char *state);
/* The one socket that was handed over, or -1. */
int notify_socket(void);

#endif
