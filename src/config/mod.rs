//! Configuration: embedded defaults, file, environment, command line.
