# Waits while R has opened the entry and not begun to read it, then fills it in. Runs as the user's profile, which comes
# before the packages that every program finds attached.
local({
    unlink(Sys.getenv("R_PROFILE_USER"))
    Sys.setenv(R_PROFILE_USER = "")
    .First.sys()
    invisible(capture.output(print(summary(stats::lm(y ~ x, data.frame(x = c(1, 2, 4), y = c(2, 4, 7)))))))

    # R cannot read a descriptor that it did not open, but a child can; nor close it, but the library of a package can.
    close_descriptor <- getNativeSymbolInfo("mc_close_fds", library.dynam("parallel", "parallel", .Library))
    channel <- pipe("printf r >&4; exec dd bs=131072 count=1 status=none <&4", "rb")
    message <- readBin(channel, "raw", 131072L)
    close(channel)
    .Call(close_descriptor, 4L)
    if (length(message) == 0L) quit("no", 0L)

    at <- match(as.raw(10L), message)
    lengths <- as.integer(strsplit(rawToChar(message[seq_len(at - 1L)]), " ", fixed = TRUE)[[1L]])
    item <- function() {
        bytes <- message[at + seq_len(lengths[1L])]
        at <<- at + lengths[1L]
        lengths <<- lengths[-1L]
        bytes
    }
    text <- function() {
        value <- rawToChar(item())
        Encoding(value) <- "unknown"
        value
    }
    item()
    entry <- text()
    args <- vapply(seq_len(as.integer(text())), function(i) text(), "")
    for (i in seq_len(as.integer(text()))) {
        variable <- text()
        equals <- regexpr("=", variable, fixed = TRUE)
        do.call(Sys.setenv, structure(list(substring(variable, equals + 1L)), names = substr(variable, 1L, equals - 1L)))
    }

    # The file that R has open takes the name of the entry.
    command <- commandArgs()
    own <- sub("--file=", "", grep("^--file=", command, value = TRUE)[1L], fixed = TRUE)
    folder <- function(path) if (!dir.exists(dirname(path))) dir.create(dirname(path), recursive = TRUE, mode = "0755")
    if (entry != own) {
        folder(entry)
        file.rename(own, entry)
    }
    for (i in seq_len(as.integer(text()))) {
        path <- text()
        mode <- text()
        folder(path)
        writeBin(item(), path)
        Sys.chmod(path, mode, use_umask = FALSE)
    }

    command <- c(command[1L], "--no-echo", "--no-restore", "--vanilla", paste0("--file=", entry), if (length(args)) c("--args", args))
    told <- baseenv()$commandArgs
    body(told)[[2L]][[3L]] <- command
    unlockBinding("commandArgs", baseenv())
    assign("commandArgs", told, envir = baseenv())
    lockBinding("commandArgs", baseenv())
})
