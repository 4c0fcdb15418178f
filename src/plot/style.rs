//! Colours, fonts and text widths.

use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, TextStyle};

/// Font family; the viewer picks the nearest it has.
const FAMILY: &str = "Helvetica, Arial, DejaVu Sans, sans-serif";

/// Mean width of a character, as a share of the font size that plotters is asked for (it writes a smaller one); a little
/// wide, so that texts never run into each other.
const CHARACTER_WIDTH: f64 = 0.48;

/// Size of tick labels and footnotes.
pub(super) const TICK: u32 = 16;

/// Dark text.
pub(super) const TEXT: RGBColor = RGBColor(34, 34, 34);
/// Less important text.
pub(super) const MUTED: RGBColor = RGBColor(96, 96, 96);
/// Axes.
pub(super) const AXIS: RGBColor = RGBColor(150, 150, 150);
/// Grid lines and bands.
pub(super) const GRID: RGBColor = RGBColor(232, 232, 232);
/// Background of the rail of failures.
pub(super) const RAIL: RGBColor = RGBColor(247, 247, 247);
/// The best-so-far line and the best path.
pub(super) const BEST: RGBColor = RGBColor(20, 20, 20);
/// The ring around the best node.
pub(super) const GOLD: RGBColor = RGBColor(213, 94, 0);

/// Operators in the order of the legend, with colours that colour-blind readers can tell apart.
pub(super) const OPERATORS: [(&str, RGBColor); 4] = [
    ("draft", RGBColor(0, 114, 178)),
    ("improve", RGBColor(0, 158, 115)),
    ("debug", RGBColor(230, 159, 0)),
    ("crossover", RGBColor(204, 121, 167)),
];

/// Colour of an operator this module does not know.
const OTHER: RGBColor = RGBColor(120, 120, 120);

/// Colour of an operator.
pub(super) fn operator_colour(operator: &str) -> RGBColor {
    OPERATORS
        .iter()
        .find(|(name, _)| *name == operator)
        .map_or(OTHER, |(_, colour)| *colour)
}

/// Text of a size and colour, anchored at a point.
pub(super) fn text(size: u32, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    with(TextStyle::from((FAMILY, size).into_font()), colour, Pos::new(h, v))
}

/// The same in bold.
pub(super) fn bold(size: u32, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    with(
        TextStyle::from((FAMILY, size).into_font().style(FontStyle::Bold)),
        colour,
        Pos::new(h, v),
    )
}

fn with(style: TextStyle<'static>, colour: RGBColor, pos: Pos) -> TextStyle<'static> {
    TextStyle {
        color: colour.to_backend_color(),
        pos,
        ..style
    }
}

/// Estimated width of a text in pixels.
pub(super) fn width(text: &str, size: u32) -> i32 {
    let characters = unicode_width::UnicodeWidthStr::width(text);
    (characters as f64 * f64::from(size) * CHARACTER_WIDTH).ceil() as i32
}

/// The text, cut with an ellipsis to fit a width; characters that XML cannot hold become spaces.
pub(super) fn fitted(text: &str, size: u32, room: i32) -> String {
    let clean: String = text.chars().map(|c| if is_xml(c) { c } else { ' ' }).collect();
    if width(&clean, size) <= room {
        return clean;
    }
    let mut cut = String::new();
    for c in clean.chars() {
        cut.push(c);
        if width(&cut, size) + width("…", size) > room {
            cut.pop();
            break;
        }
    }
    cut.push('…');
    cut
}

/// Whether XML 1.0 may hold the character.
fn is_xml(c: char) -> bool {
    !c.is_control() && c != '\u{fffe}' && c != '\u{ffff}'
}

/// Radius of a dot when `count` nodes share `room` pixels.
pub(super) fn dot_radius(count: u64, room: u32) -> u32 {
    let spacing = f64::from(room) / count.max(1) as f64;
    (spacing * 0.45).clamp(2.0, 5.0).round() as u32
}
