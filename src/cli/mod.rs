//! The command line: arguments, the SQL shell, output formats.
