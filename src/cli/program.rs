//! How the user can call this program again, for commands that are printed to be pasted.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

const NAME: &str = "clade";

/// `clade` where the search path leads to this very program, else its path, ready for a shell.
pub fn program() -> String {
    let Ok(own) = std::env::current_exe() else {
        return NAME.to_owned();
    };
    let same = |path: &Path| path.canonicalize().ok() == own.canonicalize().ok();
    let first = std::env::var_os("PATH").and_then(|folders| {
        std::env::split_paths(&folders)
            .map(|folder| folder.join(NAME))
            .find(|path| path.is_file())
    });
    if first.is_some_and(|path| same(&path)) {
        return NAME.to_owned();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    short_path(&own, home.as_deref())
}

/// A path for a shell, below the home folder with a tilde.
fn short_path(path: &Path, home: Option<&Path>) -> String {
    let below = home
        .filter(|home| home.parent().is_some())
        .and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(below) => format!("~/{}", shell_word(&below.to_string_lossy())),
        None => shell_word(&path.to_string_lossy()).into_owned(),
    }
}

/// A text as one word of a shell, quoted where it must be.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_reads_as_they_are() {
        assert_eq!(shell_word("clade-quickstart"), "clade-quickstart");
        assert_eq!(shell_word("it's mine"), r"'it'\''s mine'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn a_path_below_home_has_a_tilde() {
        let home = Some(Path::new("/home/me"));
        assert_eq!(short_path(Path::new("/home/me/bin/clade"), home), "~/bin/clade");
        assert_eq!(short_path(Path::new("/home/me/my bin/clade"), home), "~/'my bin/clade'");
        assert_eq!(short_path(Path::new("/opt/clade"), home), "/opt/clade");
        assert_eq!(short_path(Path::new("/opt/clade"), Some(Path::new("/"))), "/opt/clade");
    }
}
