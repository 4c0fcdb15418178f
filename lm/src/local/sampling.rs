//! How the authors of a model advise to sample.

use clade_lm_api::messages::Sampling;
use serde_json::{Map, Value as Json};

/// The advice of a `generation_config.json`.
pub(super) fn advice(config: &Map<String, Json>) -> Sampling {
    let number = |name: &str| config.get(name).and_then(Json::as_f64);
    let greedy = config.get("do_sample").and_then(Json::as_bool) == Some(false);
    Sampling {
        temperature: number("temperature").filter(|_| !greedy),
        // 0 is all tokens there.
        top_k: config
            .get("top_k")
            .and_then(Json::as_u64)
            .filter(|count| *count > 0)
            .and_then(|count| usize::try_from(count).ok()),
        top_p: number("top_p"),
        min_p: number("min_p"),
        repetition_penalty: number("repetition_penalty"),
        ..Sampling::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(asked: Sampling, config: &Json) -> Sampling {
        let Json::Object(config) = config else { unreachable!() };
        asked.or(advice(config))
    }

    #[test]
    fn what_is_asked_goes_before_what_is_advised() {
        let config = json!({"temperature": 0.6, "top_k": 20, "top_p": 0.95, "do_sample": true});
        let asked = Sampling {
            temperature: Some(0.0),
            seed: Some(7),
            ..Sampling::default()
        };
        let sampling = of(asked, &config);
        assert_eq!(
            (sampling.temperature(), sampling.top_k, sampling.top_p()),
            (0.0, Some(20), 0.95)
        );
        assert_eq!(of(Sampling::default(), &config).temperature(), 0.6);
        assert_eq!(of(Sampling::default(), &json!({})).temperature(), 1.0);
        let config = json!({"temperature": 0.6, "top_k": 0, "do_sample": false});
        assert_eq!(of(Sampling::default(), &config), Sampling::default());
    }
}
