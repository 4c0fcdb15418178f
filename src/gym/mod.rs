//! Task packages: import, checks, the validation split, leaderboards.
