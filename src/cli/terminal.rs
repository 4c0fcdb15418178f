//! What the terminal can do: width and colours.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// An output stream as the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns; none when the output is no terminal.
    pub width: Option<usize>,
    /// Whether colours may be used.
    pub color: bool,
}

/// The look of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Headings and names.
    Bold,
    /// What matters less.
    Dim,
    /// Good: a gain, a success.
    Green,
    /// Bad: a loss, an error.
    Red,
    /// Notes.
    Yellow,
    /// Places and keywords.
    Cyan,
}

/// Width that is assumed where the terminal does not say.
const USUAL_WIDTH: usize = 80;

impl Terminal {
    /// A pipe or a file: no colours, any width.
    pub const PLAIN: Self = Self {
        width: None,
        color: false,
    };

    /// Standard output.
    pub fn stdout(choice: ColorChoice) -> Self {
        Self::of(io::stdout().is_terminal(), libc::STDOUT_FILENO, choice)
    }

    /// Standard error.
    pub fn stderr(choice: ColorChoice) -> Self {
        Self::of(io::stderr().is_terminal(), libc::STDERR_FILENO, choice)
    }

    fn of(is_terminal: bool, descriptor: libc::c_int, choice: ColorChoice) -> Self {
        let allowed = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && allowed,
        };
        let width = is_terminal.then(|| columns(descriptor));
        Self { width, color }
    }

    /// Whether a person looks at it.
    pub fn is_interactive(&self) -> bool {
        self.width.is_some()
    }

    /// The text in a look.
    pub fn paint(&self, look: Look, text: impl fmt::Display) -> String {
        if self.color {
            format!("{}{text}\x1b[0m", look.code())
        } else {
            text.to_string()
        }
    }
}

impl Look {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Green => "\x1b[32m",
            Self::Red => "\x1b[31m",
            Self::Yellow => "\x1b[33m",
            Self::Cyan => "\x1b[36m",
        }
    }
}

/// Columns of the terminal behind a descriptor.
fn columns(descriptor: libc::c_int) -> usize {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one winsize, which `size` is; an error leaves it as it was.
    let answer = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &raw mut size) };
    if answer == 0 && size.ws_col > 0 {
        usize::from(size.ws_col)
    } else {
        USUAL_WIDTH
    }
}

/// Writes a note to standard error; a closed one is no fault of ours.
pub fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
