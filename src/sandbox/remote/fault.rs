//! Why a request to the service did not go well, and what that means for a job.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::options::RemoteOptions;
use crate::sandbox::SandboxError;

/// First and longest pause between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Longest wait that a service can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// Why a request did not go well.
#[derive(Debug)]
pub(super) enum Fault {
    /// There was no answer, or it broke off.
    Unreachable(String),
    /// The service said no.
    Refused(Refusal),
    /// The answer is none of a job service.
    Nonsense(String),
    /// A file of ours.
    Local {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// What a service says when it refuses something.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// Short name; empty where the answer is not in the form of a job service.
    pub(super) code: String,
    pub(super) message: String,
    pub(super) advice: String,
    pub(super) retry_after: Option<Duration>,
}

impl Fault {
    pub(super) fn local(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Local { action, path, source }
    }

    /// Trying again later may help.
    pub(super) fn passes(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused(refusal) => matches!(refusal.status, 408 | 429 | 500..=599),
            Self::Nonsense(_) | Self::Local { .. } => false,
        }
    }

    /// The request may have been taken all the same.
    pub(super) fn may_have_arrived(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused(refusal) => matches!(refusal.status, 500 | 502 | 504),
            Self::Nonsense(_) | Self::Local { .. } => false,
        }
    }

    /// Whether the service refused for a reason of this name.
    pub(super) fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == code)
    }

    /// The data of a job is not there.
    pub(super) fn is_unknown_data(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 422 && refusal.message.starts_with("field 'data_dir'"))
    }

    /// The error of a job that cannot go on because of it.
    pub(super) fn into_error(self, options: &RemoteOptions) -> SandboxError {
        let (url, key_env) = (&options.url, &options.key_env);
        let service = |reason: String, advice: &str| SandboxError::Service {
            url: url.clone(),
            reason,
            advice: advice.to_owned(),
        };
        match self {
            Self::Local { action, path, source } => SandboxError::Io { action, path, source },
            Self::Unreachable(reason) => service(
                format!("did not answer for {} s: {reason}", options.give_up.as_secs()),
                "See that it runs and that sandbox.remote.url is right; what it has of the job goes on there",
            ),
            Self::Nonsense(reason) => SandboxError::Config(format!(
                "what answers at {url} is no job service of this version: {reason}. See that sandbox.remote.url is right"
            )),
            Self::Refused(refusal) => {
                let said = refusal.to_string();
                match refusal.status {
                    401 => SandboxError::Config(format!(
                        "the job service at {url} does not take the key in {key_env}: {said}. `clade key create NAME` on the server \
                         makes keys"
                    )),
                    403 => SandboxError::Config(format!(
                        "the key in {key_env} may not run jobs on the job service at {url}: {said}. It needs the role submit"
                    )),
                    404 if refusal.code == "unknown_job" => service(
                        format!("knows nothing of its job any more: {said}"),
                        "The job can be tried again",
                    ),
                    410 if refusal.code == "submission_gone" => service(
                        format!("did not keep a submission long enough: {said}"),
                        "The job can be tried again",
                    ),
                    _ if refusal.code.is_empty() && refusal.status < 500 => {
                        Self::Nonsense(format!("it says {said}")).into_error(options)
                    }
                    408 | 429 | 500..=599 => service(
                        format!("took nothing for {} s: {said}", options.give_up.as_secs()),
                        "The job can be tried again",
                    ),
                    _ => SandboxError::Config(format!("the job service at {url} refuses a job: {said}")),
                }
            }
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(reason) | Self::Nonsense(reason) => f.write_str(reason),
            Self::Refused(refusal) => write!(f, "{refusal}"),
            Self::Local { action, path, source } => write!(f, "cannot {action} {}: {source}", path.display()),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            status,
            code,
            message,
            advice,
            ..
        } = self;
        match code.as_str() {
            "" => write!(f, "{status}: {message}"),
            code => write!(f, "{message} ({status} {code}); {advice}"),
        }
    }
}

/// Tries on while that may help, for a time that begins anew when something goes well.
#[derive(Debug)]
pub(super) struct Patience {
    give_up: Duration,
    since: Option<Instant>,
    pause: Duration,
}

impl Patience {
    pub(super) fn new(give_up: Duration) -> Self {
        Self {
            give_up,
            since: None,
            pause: FIRST_PAUSE,
        }
    }

    /// Something went well.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.give_up);
    }

    /// Waits before the next try, also where it is cancelled meanwhile; gives the fault back when there should be none.
    pub(super) async fn after(&mut self, fault: Fault, cancel: &CancellationToken) -> Result<(), Fault> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = self.give_up.saturating_sub(since.elapsed());
        if !fault.passes() || left.is_zero() {
            return Err(fault);
        }
        let asked = match &fault {
            Fault::Refused(refusal) => refusal.retry_after.map(|asked| asked.min(LONGEST_ASKED)),
            _ => None,
        };
        // Those that lost the same service do not all come back at once.
        let own = self.pause.mul_f64(0.5 + 0.5 * rand::random::<f64>());
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        tracing::debug!(%fault, "the job service is asked again");
        tokio::select! {
            () = tokio::time::sleep(own.max(asked.unwrap_or_default()).min(left)) => {}
            () = cancel.cancelled() => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    fn refused(status: u16, code: &str, message: &str) -> Fault {
        Fault::Refused(Refusal {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            advice: "do this".to_owned(),
            retry_after: None,
        })
    }

    #[test]
    fn what_the_user_has_to_mend_stops_at_once_and_names_it() {
        let options = RemoteOptions::new("https://jobs.example.org", "notes");
        for (fault, expected) in [
            (refused(401, "unauthorized", "wrong key"), "CLADE_REMOTE_KEY"),
            (refused(403, "forbidden", "read only"), "role submit"),
            (
                refused(422, "invalid_field", "field 'timeout': it is 9 s"),
                "field 'timeout'",
            ),
            (refused(413, "uploads_full", "too much"), "too much"),
            (refused(404, "", "<html>"), "sandbox.remote.url"),
            (Fault::Nonsense("no JSON".to_owned()), "no JSON"),
        ] {
            assert!(!fault.passes());
            let error = fault.into_error(&options);
            assert_eq!(error.class(), ErrorClass::Config);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn what_passes_is_a_fault_of_the_machine_in_the_end() {
        let options = RemoteOptions::new("https://jobs.example.org", "notes");
        for fault in [
            Fault::Unreachable("connection refused".to_owned()),
            refused(429, "queue_full", "full"),
            refused(502, "", "bad gateway"),
            refused(503, "stopping", "stopping"),
            refused(504, "", "slow"),
        ] {
            assert!(fault.passes());
            let error = fault.into_error(&options);
            assert_eq!(error.class(), ErrorClass::Infra);
            assert!(error.to_string().contains("https://jobs.example.org"), "{error}");
        }
    }

    #[tokio::test]
    async fn patience_ends() {
        let never = CancellationToken::new();
        let mut patience = Patience::new(Duration::from_millis(300));
        let mut tries = 0;
        while patience.after(Fault::Unreachable(String::new()), &never).await.is_ok() {
            tries += 1;
        }
        assert!(tries > 1);
        let mut patience = Patience::new(Duration::from_secs(60));
        assert!(patience.after(refused(401, "unauthorized", ""), &never).await.is_err());
    }
}
