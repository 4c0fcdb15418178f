//! The page: title, legend, both panels, footer.

use plotters::coord::Shift;
use plotters::prelude::{Circle, DrawingArea, IntoDrawingArea, PathElement, Rectangle, SVGBackend, Text};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, WHITE};

use super::lanes::Lanes;
use super::scale::ScoreRange;
use super::{History, PlotRun, lineage, scores, style, summary};

/// A picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the picture: {0}")]
pub struct PlotError(String);

impl<E: std::error::Error + Send + Sync> From<plotters::drawing::DrawingAreaErrorKind<E>> for PlotError {
    fn from(error: plotters::drawing::DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

/// An area of the page in pixels.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Pixels of the page, from the left and from the top.
pub(super) struct Frame {
    pub left: i32,
    pub right: i32,
    pub top: i32,
    pub bottom: i32,
    /// Largest step of the shared axis.
    pub last_step: u64,
}

const WIDTH: u32 = 1200;
const LEFT: i32 = 84;
const RIGHT: i32 = 24;
const HEADER: i32 = 104;
const SCORES: i32 = 330;
const RAIL: i32 = 26;
const GAP: i32 = 62;
const LANE: i32 = 15;
const FOOTER: i32 = 100;
/// The lineage panel grows with its lanes between these.
const LINEAGE: std::ops::RangeInclusive<i32> = 120..=560;

impl Frame {
    /// Horizontal place of a step.
    pub fn x(&self, step: u64) -> i32 {
        self.at(step as f64)
    }

    /// Horizontal place between steps.
    pub fn at(&self, step: f64) -> i32 {
        let share = (step - 0.5) / self.last_step as f64;
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }

    /// Pixels from left to right.
    pub fn width(&self) -> u32 {
        (self.right - self.left).unsigned_abs()
    }
}

/// Draws the whole page.
pub(super) fn draw(run: &PlotRun, history: &History) -> Result<String, PlotError> {
    let lanes = Lanes::of(history);
    let wanted = i32::try_from(lanes.count).unwrap_or(i32::MAX).saturating_mul(LANE);
    let lineage_height = wanted.clamp(*LINEAGE.start(), *LINEAGE.end());
    let height = HEADER + SCORES + RAIL + GAP + lineage_height + FOOTER;
    let (left, right) = (LEFT, WIDTH as i32 - RIGHT);
    let last_step = history.last_step();
    let scores_frame = Frame {
        left,
        right,
        top: HEADER,
        bottom: HEADER + SCORES,
        last_step,
    };
    let rail = Frame {
        left,
        right,
        top: HEADER + SCORES,
        bottom: HEADER + SCORES + RAIL,
        last_step,
    };
    let top = rail.bottom + GAP;
    let lineage_frame = Frame {
        left,
        right,
        top,
        bottom: top + lineage_height,
        last_step,
    };

    let valid: Vec<f64> = history.scored().map(|(_, score)| score).collect();
    let range = ScoreRange::of(&valid, history.higher_is_better);
    let beyond = valid.iter().filter(|score| !range.contains(**score)).count();

    let mut svg = String::new();
    {
        let page = SVGBackend::with_string(&mut svg, (WIDTH, height.unsigned_abs())).into_drawing_area();
        page.fill(&WHITE)?;
        header(&page, run, history)?;
        scores::draw(&page, run, history, &scores_frame, &rail, range)?;
        lineage::draw(&page, history, &lanes, &lineage_frame)?;
        for (line, text) in (0..).zip(summary::footer(history, beyond)) {
            let text = style::fitted(&text, style::TICK, right - left);
            let y = lineage_frame.bottom + 54 + 19 * line;
            page.draw(&Text::new(
                text,
                (left, y),
                style::text(style::TICK, style::MUTED, HPos::Left, VPos::Top),
            ))?;
        }
        page.present()?;
    }
    Ok(svg)
}

/// Title, subtitle and legend.
fn header(page: &Area<'_>, run: &PlotRun, history: &History) -> Result<(), PlotError> {
    let room = WIDTH as i32 - LEFT - RIGHT;
    let title = style::fitted(&summary::title(run), 26, room);
    page.draw(&Text::new(
        title,
        (LEFT, 18),
        style::bold(26, style::TEXT, HPos::Left, VPos::Top),
    ))?;
    let subtitle = style::fitted(&summary::subtitle(run, history), 17, room);
    page.draw(&Text::new(
        subtitle,
        (LEFT, 48),
        style::text(17, style::TEXT, HPos::Left, VPos::Top),
    ))?;
    legend(page, history)
}

/// One row: a sample of each mark that is in the picture, with its name.
fn legend(page: &Area<'_>, history: &History) -> Result<(), PlotError> {
    const SIZE: u32 = 17;
    const GAP: i32 = 22;
    let y = 84;
    let mut x = LEFT;
    let label = |x: i32, text: &str| -> Result<i32, PlotError> {
        let style = style::text(SIZE, style::TEXT, HPos::Left, VPos::Center);
        page.draw(&Text::new(text.to_owned(), (x, y), style))?;
        Ok(x + style::width(text, SIZE) + GAP)
    };
    for (name, colour) in style::OPERATORS {
        if !history.nodes.iter().any(|node| node.operator == name) {
            continue;
        }
        page.draw(&Circle::new((x + 5, y), 5, colour.filled()))?;
        x = label(x + 15, name)?;
    }
    if history.nodes.iter().any(|node| node.valid_score().is_none()) {
        cross(page, (x + 5, y), 4, style::MUTED)?;
        x = label(x + 15, "failed")?;
    }
    if history.best.is_none() {
        return Ok(());
    }
    page.draw(&PathElement::new(
        vec![(x, y), (x + 22, y)],
        style::BEST.stroke_width(2),
    ))?;
    x = label(x + 30, "best so far, best path")?;
    page.draw(&Circle::new((x + 6, y), 7, style::GOLD.stroke_width(2)))?;
    label(x + 18, "best")?;
    Ok(())
}

/// A cross, the mark of a failure.
pub(super) fn cross(
    page: &Area<'_>,
    (x, y): (i32, i32),
    radius: i32,
    colour: plotters::style::RGBColor,
) -> Result<(), PlotError> {
    for (from, to) in [
        ((x - radius, y - radius), (x + radius, y + radius)),
        ((x - radius, y + radius), (x + radius, y - radius)),
    ] {
        page.draw(&PathElement::new(
            vec![from, to],
            colour.stroke_width(if radius > 2 { 2 } else { 1 }),
        ))?;
    }
    Ok(())
}

/// The shared axis of steps: ticks and labels under a frame.
pub(super) fn step_axis(page: &Area<'_>, frame: &Frame, title: bool) -> Result<(), PlotError> {
    let line = vec![(frame.left, frame.bottom), (frame.right, frame.bottom)];
    page.draw(&PathElement::new(line, style::AXIS.stroke_width(1)))?;
    for step in super::scale::step_ticks(frame.last_step, 10) {
        let x = frame.x(step);
        page.draw(&PathElement::new(
            vec![(x, frame.bottom), (x, frame.bottom + 5)],
            style::AXIS.stroke_width(1),
        ))?;
        let style = style::text(style::TICK, style::MUTED, HPos::Center, VPos::Top);
        page.draw(&Text::new(step.to_string(), (x, frame.bottom + 8), style))?;
    }
    if title {
        let middle = (frame.left + frame.right) / 2;
        let style = style::text(17, style::TEXT, HPos::Center, VPos::Top);
        page.draw(&Text::new("step", (middle, frame.bottom + 26), style))?;
    }
    Ok(())
}

/// A short label beside a point, on white, kept inside the frame.
pub(super) fn callout(page: &Area<'_>, frame: &Frame, (x, y): (i32, i32), text: &str) -> Result<(), PlotError> {
    const SIZE: u32 = 16;
    let width = style::width(text, SIZE);
    let x = if x + 12 + width <= frame.right {
        x + 12
    } else {
        x - 12 - width
    };
    let y = y.clamp(frame.top + 10, frame.bottom - 10);
    let backdrop = WHITE.mix(0.85).filled();
    page.draw(&Rectangle::new([(x - 3, y - 9), (x + width + 3, y + 9)], backdrop))?;
    page.draw(&Text::new(
        text.to_owned(),
        (x, y),
        style::bold(SIZE, style::TEXT, HPos::Left, VPos::Center),
    ))?;
    Ok(())
}
