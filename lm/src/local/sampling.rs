//! How a request samples: as it says, else as the authors of the model advise.

use clade_lm_api::messages::Sampling;
use serde_json::{Map, Value as Json};

use crate::engine;

/// Sampling of a request, given the model's `generation_config.json`.
pub(super) fn of(asked: &Sampling, advice: &Map<String, Json>) -> engine::Sampling {
    let usual = engine::Sampling::default();
    let number = |name: &str| advice.get(name).and_then(Json::as_f64);
    let greedy = advice.get("do_sample").and_then(Json::as_bool) == Some(false);
    engine::Sampling {
        temperature: asked
            .temperature
            .or_else(|| number("temperature").filter(|_| !greedy))
            .unwrap_or(usual.temperature),
        top_k: asked.top_k.or_else(|| {
            let advised = advice.get("top_k").and_then(Json::as_u64).filter(|count| *count > 0)?;
            usize::try_from(advised).ok()
        }),
        top_p: asked.top_p.or_else(|| number("top_p")).unwrap_or(usual.top_p),
        min_p: asked.min_p.or_else(|| number("min_p")).unwrap_or(usual.min_p),
        repetition_penalty: asked
            .repetition_penalty
            .or_else(|| number("repetition_penalty"))
            .unwrap_or(usual.repetition_penalty),
        presence_penalty: asked.presence_penalty.unwrap_or(usual.presence_penalty),
        frequency_penalty: asked.frequency_penalty.unwrap_or(usual.frequency_penalty),
        seed: asked.seed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_asked_goes_before_what_is_advised() {
        let Json::Object(advice) = json!({"temperature": 0.6, "top_k": 20, "top_p": 0.95, "do_sample": true}) else {
            unreachable!()
        };
        let asked = Sampling {
            temperature: Some(0.0),
            seed: Some(7),
            ..Sampling::default()
        };
        let sampling = of(&asked, &advice);
        assert_eq!(
            (sampling.temperature, sampling.top_k, sampling.top_p),
            (0.0, Some(20), 0.95)
        );
        assert_eq!(of(&Sampling::default(), &advice).temperature, 0.6);
        assert_eq!(of(&Sampling::default(), &Map::new()).temperature, 1.0);
    }
}
