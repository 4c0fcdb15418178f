//! What an answer that is no answer means: HTTP errors, errors in the place of an answer, pages for people.

use std::time::Duration;

use serde_json::Value as Json;

use super::profile::Profile;
use super::transport::TransportError;
use crate::model::{ModelError, ReplyFault, Sample, UsageDetails};

/// Longest part of a provider's message that is kept.
const LONGEST_MESSAGE: usize = 500;
const NOTHING_LEFT: &str = "the account has nothing left: pay or choose another model";

/// Why there is no usable answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The provider asks to wait.
    Limited {
        /// How long, when it says so.
        asked: Option<Duration>,
        /// What it said.
        message: String,
    },
    /// Everything else.
    Failed(ModelError),
}

/// Which model asked, and how its service speaks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speaker<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// The service.
    pub endpoint: &'a str,
    /// Variable of the key, when there is one.
    pub api_key_env: Option<&'a str>,
    /// Peculiarities.
    pub profile: &'a Profile,
}

/// An error as a provider reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reported {
    /// What it says.
    pub message: String,
    /// Codes and types, in lower case.
    codes: Vec<String>,
}

impl Reported {
    /// Reads the body of an HTTP error.
    pub(super) fn of_body(body: &str) -> Self {
        if let Ok(json) = serde_json::from_str::<Json>(body)
            && let Some(reported) = Self::of_json(&json).or_else(|| Self::of_error(&json))
        {
            return reported;
        }
        let message = match page_title(body) {
            Some(title) => format!("an HTML page ({title})"),
            None if body.trim().is_empty() => "no message".to_owned(),
            None => excerpt(body),
        };
        Self {
            message,
            codes: Vec::new(),
        }
    }

    /// Reads the `error` of an answer, if it has one.
    pub(super) fn of_json(answer: &Json) -> Option<Self> {
        let error = answer.get("error").filter(|error| !error.is_null())?;
        Some(Self::of_error(error).unwrap_or_else(|| Self {
            message: excerpt(&error.to_string()),
            codes: Vec::new(),
        }))
    }

    fn of_error(error: &Json) -> Option<Self> {
        let message = match error {
            Json::String(text) => text.clone(),
            _ => ["message", "detail"]
                .iter()
                .find_map(|name| error.get(name))
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))?,
        };
        let codes = ["code", "type"]
            .iter()
            .filter_map(|name| error.get(name))
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
                    .to_lowercase()
            })
            .collect();
        Some(Self {
            message: excerpt(&message),
            codes,
        })
    }

    /// Whether a code is one of the phrases, or the message holds one.
    fn says(&self, phrases: &[String]) -> bool {
        let message = self.message.to_lowercase();
        phrases
            .iter()
            .any(|phrase| self.codes.contains(phrase) || message.contains(phrase.as_str()))
    }

    fn has_code(&self, code: &str) -> bool {
        self.codes.iter().any(|own| own == code)
    }
}

impl Speaker<'_> {
    /// What an HTTP error means.
    pub(super) fn http_error(&self, status: u16, asked: Option<Duration>, body: &str) -> Trouble {
        let reported = Reported::of_body(body);
        let said = format!("HTTP {status}: {}", reported.message);
        if reported.says(&self.profile.out_of_credit) || status == 402 {
            return self.rejected(format!("{said}; {NOTHING_LEFT}"), no_sample());
        }
        let rejected = |reason: String| self.rejected(reason, no_sample());
        match status {
            429 => Trouble::Limited { asked, message: said },
            // An overloaded service that names a time is no broken one.
            500.. if asked.is_some() => Trouble::Limited { asked, message: said },
            400 | 413 | 422 if status == 413 || reported.says(&self.profile.too_long) => {
                self.too_long(reported.message)
            }
            400 | 403 | 422 if reported.says(&self.profile.refused) => self.fault(
                ReplyFault::Refused {
                    reason: reported.message,
                },
                nothing_spent(),
            ),
            401 | 403 => rejected(match self.api_key_env {
                Some(variable) => format!("{said}; the key in {variable} is not accepted by {}", self.endpoint),
                None => format!(
                    "{said}; {} wants a key: put it into a variable and name that in api_key_env",
                    self.endpoint
                ),
            }),
            404 => rejected(format!(
                "{said}; check the options endpoint ({}) and model: the service does not know one of them",
                self.endpoint
            )),
            300..=399 => rejected(format!(
                "{said}; {} redirects elsewhere and redirects are not followed: set endpoint to where it points",
                self.endpoint
            )),
            408 | 500.. => self.fault(ReplyFault::Failed { message: said }, no_sample()),
            _ => rejected(format!(
                "{said}; the service refuses the request: check extra_body and the profile"
            )),
        }
    }

    /// What an error in the place of an answer means; `sample` is what had come before it.
    pub(super) fn reported(&self, reported: Reported, sample: Sample) -> Trouble {
        if reported.says(&self.profile.out_of_credit) || reported.has_code("402") {
            return self.rejected(format!("{}; {NOTHING_LEFT}", reported.message), sample);
        }
        if reported.says(&self.profile.too_long) {
            return self.too_long(reported.message);
        }
        if reported.says(&self.profile.refused) {
            let reason = reported.message;
            return self.fault(ReplyFault::Refused { reason }, sample);
        }
        if sample.is_blank() && (reported.has_code("429") || reported.has_code("rate_limit_exceeded")) {
            return Trouble::Limited {
                asked: None,
                message: reported.message,
            };
        }
        let fault = ReplyFault::Reported {
            message: reported.message,
        };
        self.fault(fault, sample)
    }

    /// What a failure of the connection means; `sample` is what had come before it, if it is a time limit.
    pub(super) fn transport(&self, error: TransportError, sample: Sample) -> Trouble {
        let unreachable = |message: String| {
            Trouble::Failed(ModelError::Unreachable {
                model: self.model.to_owned(),
                message,
            })
        };
        match error {
            TransportError::Connect(cause) => unreachable(format!(
                "no connection to {}: {cause}; check that the service runs and the option endpoint",
                self.endpoint
            )),
            TransportError::Timeout { setting, seconds } if setting == "connect_timeout_seconds" => unreachable(
                format!("no connection to {} within {setting} = {seconds} s", self.endpoint),
            ),
            TransportError::Timeout { setting, seconds } => {
                let bytes = sample.text.len();
                self.fault(
                    ReplyFault::Stalled {
                        setting,
                        seconds,
                        bytes,
                    },
                    sample,
                )
            }
            TransportError::Untrusted(cause) => self.config(format!(
                "the certificate of {} is not trusted: {cause}; ca_file names the certificate of a private authority",
                self.endpoint
            )),
            TransportError::Setup(cause) => self.config(cause),
            TransportError::Broken(cause) => unreachable(format!("the connection to {} broke: {cause}", self.endpoint)),
        }
    }

    /// What it means that an answer broke off after its head had come.
    pub(super) fn broken_off(&self, error: TransportError, sample: Sample) -> Trouble {
        match error {
            TransportError::Broken(cause) => {
                let bytes = sample.text.len();
                self.fault(ReplyFault::Cut { bytes, cause }, sample)
            }
            error => self.transport(error, sample),
        }
    }

    /// An answer that is not what the protocol wants.
    pub(super) fn malformed(&self, problem: String, body: &str, sample: Sample) -> Trouble {
        let fault = match page_title(body) {
            Some(title) => ReplyFault::Page { title },
            None => ReplyFault::Malformed {
                problem,
                excerpt: excerpt(body),
            },
        };
        self.fault(fault, sample)
    }

    /// A fault of the answer.
    pub(super) fn fault(&self, fault: ReplyFault, sample: Sample) -> Trouble {
        Trouble::Failed(ModelError::Reply {
            model: self.model.to_owned(),
            fault,
            sample: Box::new(sample),
        })
    }

    fn too_long(&self, message: String) -> Trouble {
        self.fault(ReplyFault::PromptTooLong { message }, nothing_spent())
    }

    fn rejected(&self, message: String, sample: Sample) -> Trouble {
        self.fault(ReplyFault::Rejected { message }, sample)
    }

    fn config(&self, reason: String) -> Trouble {
        Trouble::Failed(ModelError::Configuration {
            model: self.model.to_owned(),
            reason,
        })
    }
}

/// The request was refused before anything was generated.
fn nothing_spent() -> Sample {
    Sample {
        tokens_prompt: Some(0),
        tokens_completion: Some(0),
        cost_usd: Some(0.0),
        ..no_sample()
    }
}

/// What came when nothing came.
pub(super) fn no_sample() -> Sample {
    Sample {
        text: String::new(),
        reasoning: None,
        finish_reason: "none".to_owned(),
        tokens_prompt: None,
        tokens_completion: None,
        usage: UsageDetails::default(),
        cost_usd: None,
        cached: false,
        latency: Duration::ZERO,
    }
}

/// Title of an HTML page, or its beginning; none for another text.
fn page_title(body: &str) -> Option<String> {
    let start = body.trim_start();
    let head: String = start.chars().take(15).collect::<String>().to_lowercase();
    if !(head.starts_with("<!doctype html") || head.starts_with("<html") || head.starts_with("<head")) {
        return None;
    }
    let lower = start.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|open| {
        let from = open + lower[open..].find('>')? + 1;
        let to = from + lower[from..].find("</title")?;
        start.get(from..to)
    });
    let title = title.map(str::trim).filter(|title| !title.is_empty());
    Some(title.map_or_else(|| "without a title".to_owned(), excerpt))
}

/// The beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::error::ErrorClass;

    fn speaker() -> Speaker<'static> {
        Speaker {
            model: "m",
            endpoint: "http://localhost:1/v1",
            api_key_env: Some("SOME_KEY"),
            profile: Profile::named("openai").unwrap(),
        }
    }

    fn class_and_text(trouble: Trouble) -> (ErrorClass, String) {
        match trouble {
            Trouble::Limited { message, .. } => (ErrorClass::RateLimit, message),
            Trouble::Failed(error) => (error.class(), error.to_string()),
        }
    }

    #[test]
    fn each_http_error_has_its_class_and_says_what_to_do() {
        let page = "<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head></html>";
        for (status, body, class, said) in [
            (
                401,
                r#"{"error": {"message": "bad key"}}"#,
                ErrorClass::Config,
                "HTTP 401: bad key; the key in SOME_KEY",
            ),
            (402, "", ErrorClass::Config, "nothing left"),
            (
                404,
                r#"{"detail": "Not Found"}"#,
                ErrorClass::Config,
                "options endpoint",
            ),
            (
                400,
                r#"{"error": "unknown field"}"#,
                ErrorClass::Config,
                "check extra_body",
            ),
            (307, "", ErrorClass::Config, "redirects"),
            (
                400,
                r#"{"error": {"message": "no", "code": "context_length_exceeded"}}"#,
                ErrorClass::Candidate,
                "too long",
            ),
            (413, "", ErrorClass::Candidate, "too long"),
            (
                400,
                r#"{"error": {"message": "no", "code": "content_policy_violation"}}"#,
                ErrorClass::Candidate,
                "refused to answer: no",
            ),
            (
                429,
                r#"{"error": {"message": "slow down"}}"#,
                ErrorClass::RateLimit,
                "slow down",
            ),
            (
                429,
                r#"{"error": {"message": "no", "type": "insufficient_quota"}}"#,
                ErrorClass::Config,
                "nothing left",
            ),
            (500, "oops", ErrorClass::Provider, "HTTP 500: oops"),
            (502, page, ErrorClass::Provider, "an HTML page (502 Bad Gateway)"),
        ] {
            let (found, text) = class_and_text(speaker().http_error(status, None, body));
            assert_eq!(found, class, "{status} {body}");
            assert!(text.contains(said), "{text}");
        }
        for status in [503, 529] {
            let busy = speaker().http_error(status, Some(Duration::from_secs(3)), "");
            assert_eq!(class_and_text(busy).0, ErrorClass::RateLimit);
            assert_eq!(
                class_and_text(speaker().http_error(status, None, "")).0,
                ErrorClass::Provider
            );
        }
    }

    #[test]
    fn long_messages_are_cut() {
        assert!(excerpt(&"é ".repeat(1000)).chars().count() < 510);
    }
}
