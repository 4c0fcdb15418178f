//! Reports: what is in a page of runs or of a suite, what hostile texts can do in it, how large it gets, and how it works in a browser.

mod browser;
mod chromium;
mod contents;
mod history;
mod hostile;
mod html;
mod size;
mod suite;
