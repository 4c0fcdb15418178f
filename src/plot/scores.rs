//! The upper panel: score over steps, best so far, and a rail of failures.

use plotters::prelude::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, FontTransform};

use super::canvas::{Area, Frame, PlotError, callout, cross, step_axis};
use super::scale::{ScoreRange, score_text, ticks};
use super::{History, PlotRun, is_better, style, summary};

/// Draws the panel and its rail.
pub(super) fn draw(
    page: &Area<'_>,
    run: &PlotRun,
    history: &History,
    frame: &Frame,
    rail: &Frame,
    range: ScoreRange,
) -> Result<(), PlotError> {
    let y = |score: f64| {
        let share = (range.clamp(score) - range.low) / (range.high - range.low);
        frame.bottom - (share * f64::from(frame.bottom - frame.top)).round() as i32
    };
    axis(page, run, frame, range, y)?;
    failures(page, history, rail)?;
    best_so_far(page, history, frame, y)?;

    let radius = style::dot_radius(frame.last_step, frame.width());
    for (index, score) in history.scored() {
        let node = &history.nodes[index];
        let colour = style::operator_colour(&node.operator).mix(0.85).filled();
        let place = (frame.x(node.step), y(score));
        if range.contains(score) {
            page.draw(&Circle::new(place, radius, colour))?;
        } else {
            // Points away from the panel: the score is further out.
            let tip = if score > range.high { -7 } else { 7 };
            let (x, edge) = (place.0, place.1 - tip);
            page.draw(&Polygon::new(
                vec![(x - 4, edge), (x + 4, edge), (x, edge + tip)],
                colour,
            ))?;
        }
    }
    if let Some(best) = history.best
        && let Some(score) = history.nodes[best].score
    {
        let place = (frame.x(history.nodes[best].step), y(score));
        page.draw(&Circle::new(place, radius + 4, style::GOLD.stroke_width(2)))?;
        // Beyond the best there is nothing, so the label is out of the way there.
        let away = if run.higher_is_better { -14 } else { 14 };
        callout(page, frame, (place.0, place.1 + away), &score_text(score))?;
    }
    Ok(())
}

/// Grid, tick labels and the title of the axis.
fn axis(
    page: &Area<'_>,
    run: &PlotRun,
    frame: &Frame,
    range: ScoreRange,
    y: impl Fn(f64) -> i32,
) -> Result<(), PlotError> {
    let (values, decimals) = ticks(range.low, range.high, 6);
    for value in values {
        let height = y(value);
        let line = vec![(frame.left, height), (frame.right, height)];
        page.draw(&PathElement::new(line, style::GRID.stroke_width(1)))?;
        let label = if value.abs() >= 1e6 {
            format!("{value:.2e}")
        } else {
            format!("{value:.decimals$}")
        };
        let style = style::text(style::TICK, style::MUTED, HPos::Right, VPos::Center);
        page.draw(&Text::new(label, (frame.left - 8, height), style))?;
    }
    let line = vec![(frame.left, frame.top), (frame.left, frame.bottom)];
    page.draw(&PathElement::new(line, style::AXIS.stroke_width(1)))?;
    let title = style::fitted(&summary::metric(run), 16, frame.bottom - frame.top);
    let style = style::text(16, style::TEXT, HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
    page.draw(&Text::new(title, (18, (frame.top + frame.bottom) / 2), style))?;
    Ok(())
}

/// Every program without a valid score, as a cross on its own rail.
fn failures(page: &Area<'_>, history: &History, rail: &Frame) -> Result<(), PlotError> {
    page.draw(&Rectangle::new(
        [(rail.left, rail.top), (rail.right, rail.bottom)],
        style::RAIL.filled(),
    ))?;
    let middle = (rail.top + rail.bottom) / 2;
    let style = style::text(style::TICK, style::MUTED, HPos::Right, VPos::Center);
    page.draw(&Text::new("failed", (rail.left - 8, middle), style))?;
    let radius = if style::dot_radius(rail.last_step, rail.width()) > 3 {
        4
    } else {
        2
    };
    for node in history.nodes.iter().filter(|node| node.valid_score().is_none()) {
        cross(
            page,
            (rail.x(node.step), middle),
            radius,
            style::operator_colour(&node.operator),
        )?;
    }
    step_axis(page, rail, false)
}

/// The step line of the best score so far.
fn best_so_far(page: &Area<'_>, history: &History, frame: &Frame, y: impl Fn(f64) -> i32) -> Result<(), PlotError> {
    let mut line: Vec<(i32, i32)> = Vec::new();
    let mut leading: Option<f64> = None;
    for (index, score) in history.scored() {
        if leading.is_some_and(|leading| !is_better(history.higher_is_better, score, leading)) {
            continue;
        }
        let x = frame.x(history.nodes[index].step);
        if let Some((_, height)) = line.last().copied() {
            line.push((x, height));
        }
        line.push((x, y(score)));
        leading = Some(score);
    }
    if let Some((_, height)) = line.last().copied() {
        line.push((frame.right, height));
        page.draw(&PathElement::new(line, style::BEST.stroke_width(2)))?;
    }
    Ok(())
}
