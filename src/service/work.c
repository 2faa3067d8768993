/* Owns a few threads and two lists: what is to be done, and what has been. */
#include "service/work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

struct list {
    struct work_item *first, **last;
};

struct work {
    struct loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool closing;
    struct list wanted, finished;
    struct loop_watch watch;
    pthread_t *threads;
    unsigned thread_count;
};

static void list_clear(struct list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static void list_add(struct list *list, struct work_item *item)
{
    item->next = NULL;
    *list->last = item;
    list->last = &item->next;
}

static struct work_item *list_take(struct list *list)
{
    struct work_item *item = list->first;
    if (item && !(list->first = item->next))
        list->last = &list->first;
    return item;
}

static void *serve(void *context)
{
    struct work *work = context;
    uint64_t one = 1;
    pthread_mutex_lock(&work->lock);
    for (;;) {
        while (!work->wanted.first && !work->closing)
            pthread_cond_wait(&work->more, &work->lock);
        struct work_item *item = work->closing ? NULL : list_take(&work->wanted);
        if (!item)
            break;
        pthread_mutex_unlock(&work->lock);
        item->run(item);
        pthread_mutex_lock(&work->lock);
        list_add(&work->finished, item);
        (void)!write(work->watch.fd, &one, sizeof one);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

static void finish(struct work *work)
{
    pthread_mutex_lock(&work->lock);
    struct work_item *item = work->finished.first;
    list_clear(&work->finished);
    pthread_mutex_unlock(&work->lock);
    while (item) {
        struct work_item *next = item->next;
        item->done(item);
        item = next;
    }
}

static void on_finished(void *context, uint32_t events)
{
    struct work *work = context;
    uint64_t count;
    (void)events;
    (void)!read(work->watch.fd, &count, sizeof count);
    finish(work);
}

/* Signals are the loop's. */
static int start_thread(struct work *work)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&work->threads[work->thread_count], NULL, serve, work);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work->thread_count += !failed;
    return failed;
}

int work_open(struct loop *loop, unsigned threads, struct work **out, cordon_error *err)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work || !(work->threads = calloc(threads, sizeof *work->threads))) {
        free(work);
        return error_nomem(err);
    }
    work->loop = loop;
    list_clear(&work->wanted);
    list_clear(&work->finished);
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->more, NULL);
    work->watch = (struct loop_watch){.fd = -1, .ready = on_finished, .context = work};
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), failed = fd < 0 ? errno : 0;
    if (!failed && loop_watch(loop, &work->watch, fd, EPOLLIN) < 0)
        failed = errno;
    for (unsigned i = 0; i < threads && !failed; i++)
        failed = start_thread(work);
    if (failed) {
        work_close(work);
        return error_sys(err, failed, "threads", "cannot start the daemon's threads");
    }
    *out = work;
    return 0;
}

void work_submit(struct work *work, struct work_item *item)
{
    pthread_mutex_lock(&work->lock);
    list_add(&work->wanted, item);
    pthread_cond_signal(&work->more);
    pthread_mutex_unlock(&work->lock);
}

void work_close(struct work *work)
{
    if (!work)
        return;
    pthread_mutex_lock(&work->lock);
    work->closing = true;
    pthread_cond_broadcast(&work->more);
    pthread_mutex_unlock(&work->lock);
    for (unsigned i = 0; i < work->thread_count; i++)
        pthread_join(work->threads[i], NULL);
    finish(work);
    for (struct work_item *item; (item = list_take(&work->wanted));)
        item->done(item);
    int fd = work->watch.fd;
    loop_forget(work->loop, &work->watch);
    cleanup_close(&fd);
    pthread_mutex_destroy(&work->lock);
    pthread_cond_destroy(&work->more);
    free(work->threads);
    free(work);
}
