//! The features of a row: columns as they are, parts of dates, pictures, series, and the past of a forecast.

use super::script::Script;
use crate::model::evolver::genome::{ForecastFeatures, ImageFeatures, Level, SeriesFeatures, TabularGenome};
use crate::model::evolver::literal::{list, quote};
use crate::model::evolver::profile::{Forecast, Images, Series, TaskProfile};

/// Renders `features(frame)` and the helpers it needs, and the model inputs `X` and `X_test`.
pub(crate) fn features(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    script.section("Features");
    if let (Some(chosen), Some(forecast)) = (&genome.forecast, &profile.forecast) {
        return series_to_continue(script, *chosen, forecast);
    }
    let mut parts = Vec::new();
    if let (Some(chosen), Some(images)) = (&genome.images, &profile.images) {
        pictures(script, *chosen, images);
        let names = frame_names(&images.column, images.with_suffix);
        parts.push(format!("pixel_features({names}, frame.index)"));
    }
    if let (Some(chosen), Some(series)) = (&genome.series, &profile.series) {
        parts.push(measured_series(script, *chosen, series));
    }
    let columns = table_columns(profile);
    if columns.is_empty() && profile.dates.is_empty() && parts.len() == 1 {
        let part = &parts[0];
        script.function(format!(
            "def features(frame):\n    \"\"\"Model inputs of the rows of one table.\"\"\"\n    return {part}"
        ));
    } else {
        script.function(table_features(profile, &columns, &parts));
    }
    script.line("X, X_test = features(train), features(test)");
    let mixed = !parts.is_empty() || !profile.dates.is_empty();
    if mixed && !profile.dense_only() {
        script.line("NUMBERS = list(X.select_dtypes(\"number\").columns)");
    }
}

fn frame_names(column: &str, with_suffix: bool) -> String {
    let column = if column.is_empty() {
        "ID".to_owned()
    } else {
        quote(column)
    };
    if with_suffix {
        format!("frame[{column}].str.rsplit(\"/\").str[-1]")
    } else {
        format!("frame[{column}].astype(str)")
    }
}

fn table_columns(profile: &TaskProfile) -> Vec<&'static str> {
    let mut columns = Vec::new();
    for (name, present) in [
        ("NUMERIC", !profile.numeric.is_empty()),
        ("LOW_CARDINALITY", !profile.low.is_empty()),
        ("HIGH_CARDINALITY", !profile.high.is_empty()),
        ("TEXT", !profile.text.is_empty()),
    ] {
        if present {
            columns.push(name);
        }
    }
    columns
}

fn table_features(profile: &TaskProfile, columns: &[&str], parts: &[String]) -> String {
    let mut text = String::from("def features(frame):\n    \"\"\"Model inputs of the rows of one table.\"\"\"\n");
    if columns.is_empty() {
        text += "    table = pd.DataFrame(index=frame.index)\n";
    } else {
        text += &format!("    table = frame[{}].copy()\n", columns.join(" + "));
    }
    let categories: Vec<_> = columns
        .iter()
        .filter(|name| name.ends_with("CARDINALITY"))
        .copied()
        .collect();
    if !categories.is_empty() {
        text += &format!("    for column in {}:\n", categories.join(" + "));
        text += "        table[column] = table[column].astype(object).fillna(\"missing\").astype(str)\n";
    }
    if !profile.text.is_empty() {
        text += "    table[TEXT] = table[TEXT].fillna(\"\")\n";
    }
    for date in &profile.dates {
        text += &format!(
            "    when = pd.to_datetime(frame[{}], format={}).dt\n",
            quote(&date.name),
            quote(date.layout.pandas())
        );
        let drifts = profile.time_order.as_ref() == Some(date);
        for part in ["year", "month", "dayofweek", "dayofyear"]
            .iter()
            .skip(usize::from(drifts))
        {
            text += &format!("    table[{}] = when.{part}\n", quote(&format!("{} {part}", date.name)));
        }
    }
    if parts.is_empty() {
        text += "    return table";
    } else {
        text += &format!("    return pd.concat([table, {}], axis=1)", parts.join(", "));
    }
    text
}

fn pictures(script: &mut Script, chosen: ImageFeatures, images: &Images) {
    script.from("PIL", "Image");
    let key = if images.with_suffix { "name" } else { "stem" };
    script.line(format!(
        "SIZE = CONFIG[\"images\"][\"size\"]\nPATHS = {{path.{key}: path for path in DATA_DIR.rglob({})}}",
        quote(&format!("*{}", images.suffix))
    ));
    let (mode, name) = if chosen.color { ("RGB", "colour") } else { ("L", "grey") };
    script.function(format!(
        "def read_image(name):\n    \"\"\"A picture in {name} values from 0 to 1.\"\"\"\n    with Image.open(PATHS[name]) as image:\n        \
         return np.asarray(image.convert(\"{mode}\").resize((SIZE, SIZE)), dtype=np.float32) / 255"
    ));
    let mut body = String::from(
        "def pixel_features(names, index):\n    \"\"\"One row of values for each picture.\"\"\"\n    images = np.stack([read_image(name) for name in names])\n",
    );
    if chosen.gradient_cells > 0 {
        script.line("CELLS = CONFIG[\"images\"][\"gradient_cells\"]");
        let grey = if chosen.color { "images.mean(axis=3)" } else { "images" };
        script.function(
            "def gradient_histograms(images):\n    \"\"\"Histograms of edge directions in a grid of cells.\"\"\"\n    \
             down, right = np.gradient(images, axis=(1, 2))\n    strength = np.hypot(down, right)\n    \
             direction = ((np.arctan2(down, right) / np.pi + 1) * 4).astype(int) % 8\n    \
             side = SIZE // CELLS\n    histograms = []\n    for angle in range(8):\n        \
             part = np.where(direction == angle, strength, 0.0)\n        \
             histograms.append(part.reshape(-1, CELLS, side, CELLS, side).sum(axis=(2, 4)).reshape(len(images), -1))\n    \
             return np.sqrt(np.hstack(histograms))",
        );
        body += &format!("    values = np.hstack([images.reshape(len(images), -1), gradient_histograms({grey})])\n");
        body += "    return pd.DataFrame(values, index=index).add_prefix(\"pixel_\")";
    } else {
        body += "    return pd.DataFrame(images.reshape(len(images), -1), index=index).add_prefix(\"pixel_\")";
    }
    script.function(body);
    if chosen.shifts {
        let shape = if chosen.color {
            "(len(table), SIZE, SIZE, 3)"
        } else {
            "(len(table), SIZE, SIZE)"
        };
        script.function(format!(
            "def with_shifts(table, targets):\n    \"\"\"The pictures and four copies of each, moved by one pixel.\"\"\"\n    \
             images = table.to_numpy().reshape{shape}\n    copies = [images]\n    for step, axis in [(1, 1), (-1, 1), (1, 2), (-1, 2)]:\n        \
             copies.append(np.roll(images, step, axis=axis))\n    values = np.concatenate(copies).reshape(5 * len(table), -1)\n    \
             return pd.DataFrame(values, columns=table.columns), np.concatenate([targets] * 5)"
        ));
    }
}

fn measured_series(script: &mut Script, chosen: SeriesFeatures, series: &Series) -> String {
    let part = match series {
        Series::Tables { files, order, channels } => {
            script.line(format!("SERIES_FILES = {}", list(files, 15)));
            script.line(format!("CHANNELS = {}", list(channels, 11)));
            let sort = match order {
                Some(order) => format!(".sort_values([ID, {}])", quote(order)),
                None => String::new(),
            };
            script.line(format!(
                "long = pd.concat([pd.read_csv(DATA_DIR / name) for name in SERIES_FILES]){sort}"
            ));
            script
                .line("SERIES = {name: part[CHANNELS].to_numpy(float) for name, part in long.groupby(ID, sort=False)}");
            "series_features([SERIES[name] for name in frame[ID]], frame.index)".to_owned()
        }
        Series::Arrays {
            suffix,
            column,
            with_suffix,
        } => {
            let key = if *with_suffix { "name" } else { "stem" };
            script.line(format!(
                "PATHS = {{path.{key}: path for path in DATA_DIR.rglob({})}}",
                quote(&format!("*{suffix}"))
            ));
            let read = if suffix == ".npy" {
                "np.load(path)"
            } else {
                "pd.read_csv(path).to_numpy(float)"
            };
            script.function(format!(
                "def read_series(path):\n    \"\"\"Steps by channels.\"\"\"\n    values = {read}\n    return values.reshape(len(values), -1).astype(float)"
            ));
            let names = frame_names(column, *with_suffix);
            format!("series_features([read_series(PATHS[name]) for name in {names}], frame.index)")
        }
    };
    let mut summary = String::from(
        "def summary(values):\n    \"\"\"Numbers that describe one series of any length.\"\"\"\n    changes = np.diff(values, axis=0, prepend=values[:1])\n    \
         parts = [values.mean(0), values.std(0), values.min(0), values.max(0), values[0], values[-1], np.abs(changes).mean(0)]\n",
    );
    if chosen.quantiles {
        summary += "    parts.extend(np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9], axis=0))\n";
    }
    if chosen.correlations {
        summary += "    centred = values - values.mean(0)\n    scale = np.maximum(values.std(0), 1e-9)\n    \
                    correlations = centred.T @ centred / len(values) / np.outer(scale, scale)\n    \
                    parts.append(correlations[np.triu_indices(len(scale), 1)])\n";
    }
    if chosen.steps > 0 {
        summary += "    times = np.linspace(0, len(values) - 1, CONFIG[\"series\"][\"steps\"])\n    \
                    parts.extend(np.interp(times, np.arange(len(values)), channel) for channel in values.T)\n";
    }
    summary += "    return np.concatenate([*parts, [len(values)]])";
    script.function(summary);
    script.function(
        "def series_features(series, index):\n    \"\"\"One row of numbers for each series.\"\"\"\n    \
         return pd.DataFrame([summary(values) for values in series], index=index).add_prefix(\"series_\")",
    );
    part
}

fn series_to_continue(script: &mut Script, chosen: ForecastFeatures, forecast: &Forecast) {
    let date = quote(&forecast.time.name);
    let format = quote(forecast.time.layout.pandas());
    let used = &forecast.lags[..chosen.lags as usize];
    let is_daily = forecast.step == "D";
    let category = if is_daily { "weekday" } else { "quarter" };
    script.line(format!("CALENDAR = [\"{category}\", \"month\"]"));
    if !used.is_empty() {
        let lags: Vec<_> = used.iter().map(u32::to_string).collect();
        script.line(format!("LAGS = [{}]", lags.join(", ")));
    }
    for (name, table) in [("dates", "train"), ("test_dates", "test")] {
        script.line(format!(
            "{name} = pd.DatetimeIndex(pd.to_datetime({table}[{date}], format={format}))"
        ));
    }
    if !used.is_empty() || chosen.level == Level::Year {
        script.line("history = pd.Series(y, index=dates)");
    }
    if chosen.level == Level::Year {
        script.line("horizon = pd.Timedelta(days=365 * max(1, round((test_dates.max() - dates[-1]).days / 365.25)))");
        script.line("yearly_mean = history.rolling(\"365D\").mean()[dates >= dates[0] + pd.Timedelta(days=360)]");
        script.function(
            "def level(when):\n    \"\"\"Mean of the latest whole year that is known one horizon ahead.\"\"\"\n    \
             return yearly_mean.reindex(when - horizon, method=\"ffill\").to_numpy()",
        );
    }
    let mut body = String::from(
        "def features(when):\n    \"\"\"Calendar and past of each date.\"\"\"\n    table = pd.DataFrame(index=range(len(when)))\n",
    );
    body += if is_daily {
        "    table[\"weekday\"] = when.dayofweek.astype(str)\n    table[\"month\"] = when.month.astype(str)\n    \
         table[\"year\"] = when.year\n    table[\"day\"] = when.day\n    table[\"day_of_year\"] = when.dayofyear\n    \
         table[\"weekday_number\"] = when.dayofweek\n    table[\"week_of_month\"] = (when.day - 1) // 7\n    \
         table[\"days_left_in_month\"] = when.days_in_month - when.day\n"
    } else {
        "    table[\"quarter\"] = when.quarter.astype(str)\n    table[\"month\"] = when.month.astype(str)\n    \
         table[\"year\"] = when.year\n    table[\"day_of_year\"] = when.dayofyear\n"
    };
    if chosen.waves > 0 {
        body += "    for wave in range(1, CONFIG[\"forecast\"][\"waves\"] + 1):\n        angle = 2 * np.pi * wave * when.dayofyear / 365.25\n        \
                 table[f\"sine_{wave}\"] = np.sin(angle)\n        table[f\"cosine_{wave}\"] = np.cos(angle)\n";
    }
    if !used.is_empty() {
        let offset = match forecast.step {
            "D" => "pd.Timedelta(days=lag)",
            "W" => "pd.Timedelta(weeks=lag)",
            "MS" => "pd.DateOffset(months=lag)",
            _ => "pd.DateOffset(months=3 * lag)",
        };
        let scaled = if chosen.level == Level::Year {
            " / level(then)"
        } else {
            ""
        };
        body += &format!(
            "    for lag in LAGS:\n        then = when - {offset}\n        table[f\"lag_{{lag}}\"] = history.reindex(then).to_numpy(){scaled}\n"
        );
    }
    body += "    return table";
    script.function(body);
    script.line("X, X_test = features(dates), features(test_dates)");
    script.line("NUMBERS = list(X.select_dtypes(\"number\").columns)");
}
