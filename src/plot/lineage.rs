//! The lower panel: who came from whom.

use plotters::prelude::{Circle, PathElement, Text};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, FontTransform, RGBAColor, ShapeStyle, WHITE};

use super::canvas::{Area, Frame, PlotError, cross, step_axis};
use super::lanes::Lanes;
use super::{History, style};

/// Points of a bend.
const BEND_POINTS: i32 = 8;

/// Draws the panel.
pub(super) fn draw(page: &Area<'_>, history: &History, lanes: &Lanes, frame: &Frame) -> Result<(), PlotError> {
    let y = |index: usize| {
        let share = (lanes.lane[index] as f64 + 0.5) / lanes.count as f64;
        frame.top + (share * f64::from(frame.bottom - frame.top)).round() as i32
    };
    let place = |index: usize| (frame.x(history.nodes[index].step), y(index));
    let style = style::text(16, style::TEXT, HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
    page.draw(&Text::new("lineage", (18, (frame.top + frame.bottom) / 2), style))?;

    let crowded = frame.last_step > 150;
    let faint = if crowded { 0.35 } else { 0.55 };
    for (child, node) in history.nodes.iter().enumerate() {
        let colour = style::operator_colour(&node.operator);
        for (parent, share) in [(history.second_parents[child], 0.6), (history.parents[child], 1.0)] {
            if let Some(parent) = parent {
                let edge = bend(frame, place(parent), place(child));
                page.draw(&PathElement::new(edge, line(colour.mix(faint * share), 1)))?;
            }
        }
    }
    for pair in history.best_path.windows(2) {
        let (parent, child) = (pair[0], pair[1]);
        let edge = bend(frame, place(parent), place(child));
        page.draw(&PathElement::new(edge, line(style::BEST.mix(1.0), 3)))?;
    }

    let spacing = (frame.bottom - frame.top) / i32::try_from(lanes.count).unwrap_or(i32::MAX).max(1);
    let room = spacing.clamp(2, 10).unsigned_abs() / 2;
    let radius = style::dot_radius(frame.last_step, frame.width()).min(room.max(2));
    for (index, node) in history.nodes.iter().enumerate() {
        let colour = style::operator_colour(&node.operator);
        if node.valid_score().is_some() {
            page.draw(&Circle::new(place(index), radius, colour.filled()))?;
        } else {
            cross(page, place(index), if radius > 3 { 3 } else { 2 }, colour)?;
        }
    }
    for index in &history.best_path {
        let colour = style::operator_colour(&history.nodes[*index].operator);
        page.draw(&Circle::new(place(*index), radius + 2, WHITE.filled()))?;
        page.draw(&Circle::new(place(*index), radius + 1, colour.filled()))?;
        page.draw(&Circle::new(place(*index), radius + 2, style::BEST.stroke_width(1)))?;
    }
    if let Some(best) = history.best {
        page.draw(&Circle::new(place(best), radius + 5, style::GOLD.stroke_width(2)))?;
    }
    step_axis(page, frame, true)
}

fn line(colour: RGBAColor, width: u32) -> ShapeStyle {
    colour.stroke_width(width)
}

/// A line along the parent's lane that bends into the child's lane just before the child.
fn bend(frame: &Frame, from: (i32, i32), to: (i32, i32)) -> Vec<(i32, i32)> {
    if from.1 == to.1 {
        return vec![from, to];
    }
    let step = f64::from(frame.width()) / frame.last_step as f64;
    let reach = step.clamp(8.0, 28.0).round() as i32;
    let start = (to.0 - reach).max(from.0);
    let mut points = vec![from];
    for i in 0..=BEND_POINTS {
        let t = f64::from(i) / f64::from(BEND_POINTS);
        let eased = t * t * (3.0 - 2.0 * t);
        points.push((
            start + (f64::from(to.0 - start) * t).round() as i32,
            from.1 + (f64::from(to.1 - from.1) * eased).round() as i32,
        ));
    }
    points.dedup();
    points
}
