//! Hostile programs: 44 numbered cases in nine groups, each run without a sandbox where that is safe, in jails with and without
//! control groups, and in containers. A test is named after its cases, and docs/security.md says what it saw.
//!
//! | group | cases | file |
//! |---|---|---|
//! | A | 1 to 7, files | `files` |
//! | B | 8 to 12, network | `network` |
//! | C | 13 to 16, the kernel | `kernel` |
//! | D | 17 to 23, limits | `resources`, `disk` |
//! | E | 24 to 31, ends of a job | `lifecycle`, `killed` |
//! | F | 32 to 35, submissions | `submission` |
//! | G | 36 to 39, scores and neighbours | `scoring`, `neighbours` |
//! | H | 40 and 41, what must work | `honest`, `complete` |
//! | I | 42 to 44, the warm pool | `warm` |

mod attempts;
mod complete;
mod disk;
mod files;
mod honest;
mod kernel;
mod killed;
mod lifecycle;
mod neighbours;
mod network;
mod resources;
mod rows;
mod scoring;
mod submission;
mod warm;
mod words;
