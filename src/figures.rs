//! Figures as people read them.

/// US dollars, to a hundredth of a cent.
pub fn dollars(amount: f64) -> String {
    if amount == 0.0 {
        "$0".to_owned()
    } else {
        format!("${amount:.4}")
    }
}

/// A time as people say it: `0.35 s`, `4.2 s`, `52 s`, `3 min 10 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round();
    if seconds < 0.005 {
        return "0 s".to_owned();
    }
    if seconds < 0.995 {
        return format!("{seconds:.2} s");
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    if whole < 60.0 {
        return format!("{whole} s");
    }
    if whole < 3600.0 {
        return format!("{} min {} s", (whole / 60.0).floor(), whole % 60.0);
    }
    let minutes = (seconds / 60.0).round();
    format!("{} h {} min", (minutes / 60.0).floor(), minutes % 60.0)
}

/// A score with as many digits as tell scores apart: six decimals, or four digits when it is tiny.
pub fn score(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number with its thing, in the plural where it must be.
pub fn counted(number: u64, thing: &str) -> String {
    let plural = match number {
        1 => "",
        _ if thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {thing}{plural}")
}

/// A whole number with its thousands apart: `12,345`.
pub fn thousands(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_as_people_say_them() {
        for (seconds, said) in [
            (0.0, "0 s"),
            (0.351, "0.35 s"),
            (4.24, "4.2 s"),
            (9.96, "10 s"),
            (52.4, "52 s"),
            (59.7, "1 min 0 s"),
            (190.0, "3 min 10 s"),
            (3_599.6, "1 h 0 min"),
            (7_500.0, "2 h 5 min"),
        ] {
            assert_eq!(duration(seconds), said);
        }
        assert_eq!(score(0.992_666_666_666_7), "0.992667");
        assert_eq!((score(2.5), score(-0.000_012_345)), ("2.5".into(), "-1.234e-5".into()));
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(-999), "-999");
        assert_eq!(
            (counted(1, "job"), counted(0, "job")),
            ("1 job".into(), "0 jobs".into())
        );
    }
}
