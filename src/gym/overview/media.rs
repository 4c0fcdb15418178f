//! Pictures and sounds of a folder, summed up from a sample of them.

use super::read::Reader;
use super::{audio, image};

/// Files of a folder whose headers are read.
const LOOKED_AT: usize = 32;

/// What a sample of a folder's pictures or sounds says of all of them.
pub(super) fn of_folder(folder: &str, files: Vec<(&str, &str)>, kind: &str, reader: &mut Reader) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    // Evenly over the names, which often sort by class or time.
    let step = files.len().div_ceil(LOOKED_AT);
    let sample: Vec<String> = files
        .iter()
        .step_by(step)
        .map(|(name, _)| format!("{folder}{name}"))
        .collect();
    let words = match kind {
        "image" => pictures(&sample, reader),
        _ => sounds(&sample, reader),
    }?;
    Some(format!("{words} ({} of {} looked at)", sample.len(), files.len()))
}

fn pictures(paths: &[String], reader: &mut Reader) -> Option<String> {
    let sizes: Vec<image::ImageSize> = paths
        .iter()
        .filter_map(|path| image::read(path, reader).ok().flatten())
        .collect();
    let smallest = sizes
        .iter()
        .min_by_key(|size| u64::from(size.width) * u64::from(size.height))?;
    let largest = sizes
        .iter()
        .max_by_key(|size| u64::from(size.width) * u64::from(size.height))?;
    let size = |size: &image::ImageSize| format!("{} x {}", size.width, size.height);
    let mut text = if (smallest.width, smallest.height) == (largest.width, largest.height) {
        format!("pictures of {}", size(smallest))
    } else {
        format!("pictures of {} to {}", size(smallest), size(largest))
    };
    let mut channels: Vec<u8> = sizes.iter().filter_map(|size| size.channels).collect();
    channels.sort_unstable();
    channels.dedup();
    if !channels.is_empty() {
        let channels: Vec<String> = channels.iter().map(u8::to_string).collect();
        text.push_str(&format!(", channels: {}", channels.join(" or ")));
    }
    Some(text)
}

fn sounds(paths: &[String], reader: &mut Reader) -> Option<String> {
    let sounds: Vec<audio::Sound> = paths
        .iter()
        .filter_map(|path| {
            let size = reader.open(path).ok()?.metadata().ok()?.len();
            audio::read(path, size, reader).ok().flatten()
        })
        .collect();
    let shortest = sounds.iter().map(|sound| sound.seconds).reduce(f64::min)?;
    let longest = sounds.iter().map(|sound| sound.seconds).reduce(f64::max)?;
    let mut rates: Vec<u32> = sounds.iter().map(|sound| sound.sample_rate).collect();
    rates.sort_unstable();
    rates.dedup();
    let rates: Vec<String> = rates.iter().take(4).map(u32::to_string).collect();
    Some(format!(
        "sounds of {shortest:.2} to {longest:.2} s at {} Hz",
        rates.join(" or ")
    ))
}
