//! What is known of a server, and what it got since it last told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::faults::Faults;
use crate::service::Class;
use crate::service::api::types::ClassLoads;

/// What a server told of itself.
#[derive(Debug, Clone)]
pub(in crate::router) struct Told {
    /// When it was asked.
    pub(super) asked_at: Instant,
    pub(super) load: Option<ClassLoads>,
    pub(super) is_stopping: bool,
    pub(super) version: String,
}

/// What became of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Up,
    Down(String),
}

/// What is known of a server, as shown.
#[derive(Debug, Clone)]
pub(in crate::router) struct View {
    /// It answered when it was asked last.
    pub(in crate::router) is_up: bool,
    /// It takes no more jobs.
    pub(in crate::router) is_stopping: bool,
    /// It says that it does well, and was at fault again and again when it was asked for the job of a key.
    pub(in crate::router) is_failing: bool,
    /// Its load when it told last; none when it does not answer or tells none.
    pub(in crate::router) load: Option<ClassLoads>,
    /// Version of its engine.
    pub(in crate::router) version: Option<String>,
    /// How long it has not answered.
    pub(in crate::router) down_for: Option<Duration>,
    /// Why it is taken not to answer.
    pub(in crate::router) fault: Option<String>,
    /// Requests to it that were made again, since the start.
    pub(in crate::router) retries: u64,
    placed: [u32; 2],
}

impl View {
    /// Jobs of a class that it got since it told its load.
    pub(in crate::router) fn placed(&self, class: Class) -> u32 {
        self.placed[class as usize]
    }
}

#[derive(Debug)]
struct Known {
    told: Option<Told>,
    /// Since when it does not answer, and why; from the beginning, where nothing was heard yet.
    down: Option<(Instant, Option<String>)>,
    /// Jobs that it got since the last question that it answered was asked.
    placed: Vec<(u64, Instant, Class)>,
    next_ticket: u64,
    /// Requests that were made again.
    retries: u64,
    /// Faults in a row when it was asked for the job of a key.
    faults: Faults,
}

/// What is known of a server.
#[derive(Debug)]
pub(super) struct State {
    known: Mutex<Known>,
    is_up: watch::Sender<bool>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            known: Mutex::new(Known {
                told: None,
                down: Some((Instant::now(), None)),
                placed: Vec::new(),
                next_ticket: 0,
                retries: 0,
                faults: Faults::default(),
            }),
            is_up: watch::Sender::new(false),
        }
    }
}

impl State {
    /// What is known.
    pub(super) fn view(&self) -> View {
        let known = self.known.lock();
        let told = known.told.as_ref().filter(|_| known.down.is_none());
        let mut placed = [0; 2];
        for (_, _, class) in &known.placed {
            placed[*class as usize] += 1;
        }
        View {
            is_up: known.down.is_none(),
            is_stopping: told.is_some_and(|told| told.is_stopping),
            is_failing: known.faults.are_lasting(Instant::now()),
            load: told.and_then(|told| told.load),
            version: known.told.as_ref().map(|told| told.version.clone()),
            down_for: known.down.as_ref().map(|(since, _)| since.elapsed()),
            fault: known.down.as_ref().and_then(|(_, fault)| fault.clone()),
            retries: known.retries,
            placed,
        }
    }

    /// Notes what it told, or why it did not; says what that changes.
    pub(super) fn note(&self, told: Result<Told, String>) -> Option<Change> {
        let mut known = self.known.lock();
        let change = match told {
            Ok(told) => {
                known.placed.retain(|(_, at, _)| *at >= told.asked_at);
                known.told = Some(told);
                known.down.take().map(|_| Change::Up)
            }
            Err(fault) => match &mut known.down {
                None => {
                    known.down = Some((Instant::now(), Some(fault.clone())));
                    Some(Change::Down(fault))
                }
                Some((_, known)) => {
                    let is_first = known.is_none();
                    *known = Some(fault.clone());
                    is_first.then_some(Change::Down(fault))
                }
            },
        };
        self.is_up.send_replace(known.down.is_none());
        change
    }

    /// Counts a request that is made again.
    pub(super) fn note_retry(&self) {
        self.known.lock().retries += 1;
    }

    /// Notes how it answered the question for the job of a key.
    pub(super) fn note_key_answer(&self, is_good: bool) {
        self.known.lock().faults.note(is_good, Instant::now());
    }

    /// Waits until it does not answer.
    pub(super) async fn until_down(&self) {
        let mut is_up = self.is_up.subscribe();
        // The sender is part of this, so it is not gone.
        let _ = is_up.wait_for(|is_up| !is_up).await;
    }

    /// Counts a job that it is about to get.
    pub(super) fn place(state: &Arc<Self>, class: Class) -> Placement {
        let mut known = state.known.lock();
        let ticket = known.next_ticket;
        known.next_ticket += 1;
        known.placed.push((ticket, Instant::now(), class));
        Placement {
            state: Arc::clone(state),
            ticket,
        }
    }
}

/// A job that a server is about to get.
#[derive(Debug)]
pub(in crate::router) struct Placement {
    state: Arc<State>,
    ticket: u64,
}

impl Placement {
    /// It did not get it.
    pub(in crate::router) fn undo(self) {
        let mut known = self.state.known.lock();
        known.placed.retain(|(ticket, _, _)| *ticket != self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked_at: Instant) -> Told {
        Told {
            asked_at,
            load: Some(ClassLoads::default()),
            is_stopping: false,
            version: "1".to_owned(),
        }
    }

    #[test]
    fn jobs_count_until_a_question_that_came_after_them_is_answered() {
        let state = Arc::new(State::default());
        let before = Instant::now();
        State::place(&state, Class::Cpu);
        State::place(&state, Class::Gpu);
        State::place(&state, Class::Cpu).undo();
        state.note(Ok(told(before)));
        let view = state.view();
        assert_eq!((view.placed(Class::Cpu), view.placed(Class::Gpu)), (1, 1));
        state.note(Ok(told(Instant::now())));
        assert_eq!(state.view().placed(Class::Cpu), 0);
    }

    #[test]
    fn only_changes_are_told() {
        let state = State::default();
        assert!(!state.view().is_up, "nothing was heard yet");
        let down = || Err("gone".to_owned());
        assert_eq!(state.note(down()), Some(Change::Down("gone".to_owned())));
        assert_eq!(state.note(down()), None);
        assert_eq!(state.note(Ok(told(Instant::now()))), Some(Change::Up));
        assert_eq!(state.note(Ok(told(Instant::now()))), None);
        assert_eq!(state.note(down()), Some(Change::Down("gone".to_owned())));
        assert_eq!(state.view().load, None, "what it told is out of date");
    }
}
