/* Owns the list of runs under way. A run is taken off before it is freed, so whoever cancels never meets a freed one.
 * Called by the workers, and by the thread that watches for a reason to stop. */
#include "judge/runs.h"

#include <stdint.h>

void runs_open(struct runs *runs)
{
    *runs = (struct runs){.bound = SIZE_MAX};
    pthread_mutex_init(&runs->lock, NULL);
}

void runs_close(struct runs *runs)
{
    pthread_mutex_destroy(&runs->lock);
}

void runs_add(struct runs *runs, struct runs_one *one)
{
    pthread_mutex_lock(&runs->lock);
    one->next = runs->first;
    runs->first = one;
    if (one->index >= runs->bound)
        cordon_run_cancel(one->run);
    pthread_mutex_unlock(&runs->lock);
}

void runs_remove(struct runs *runs, struct runs_one *one)
{
    pthread_mutex_lock(&runs->lock);
    for (struct runs_one **at = &runs->first; *at; at = &(*at)->next)
        if (*at == one) {
            *at = one->next;
            break;
        }
    pthread_mutex_unlock(&runs->lock);
}

void runs_cancel_from(struct runs *runs, size_t index)
{
    pthread_mutex_lock(&runs->lock);
    if (index < runs->bound) {
        runs->bound = index;
        for (struct runs_one *one = runs->first; one; one = one->next)
            if (one->index >= index)
                cordon_run_cancel(one->run);
    }
    pthread_mutex_unlock(&runs->lock);
}

void runs_charge(struct runs *runs, const cordon_run *run)
{
    pthread_mutex_lock(&runs->lock);
    account_add(&runs->account, run_account(run));
    pthread_mutex_unlock(&runs->lock);
}

int runs_wait(struct runs *runs, size_t index, cordon_run *run, cordon_result **result, cordon_error *err)
{
    struct runs_one one = {.run = run, .index = index};
    runs_add(runs, &one);
    int code = cordon_run_wait(run, result, err);
    runs_remove(runs, &one);
    runs_charge(runs, run);
    return code;
}
