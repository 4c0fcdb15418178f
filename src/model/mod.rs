//! Generators: what turns a prompt into a program.
