/* libcordon: run a program nobody should trust, and learn exactly how it ended. */
#ifndef CORDON_H
#define CORDON_H

#include <cordon/engine.h>
#include <cordon/error.h>
#include <cordon/judge.h>
#include <cordon/request.h>
#include <cordon/result.h>
#include <cordon/run.h>

#endif
