//! Which job comes next: the highest priority first; of its users the one with the fewest running jobs, then the one served least
//! recently; of that user's jobs the oldest. It is kept in memory and made anew from the rows at every start.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::request::Class;

/// A job that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Job; ids sort by time.
    pub job_id: String,
    /// User.
    pub user: String,
    /// Class of workers.
    pub class: Class,
    /// 1 is first.
    pub priority: u8,
}

/// What is known of a user.
#[derive(Debug, Default)]
struct User {
    running: u32,
    running_limit: Option<u32>,
    /// Number of the turn at which it was last served; 0 is never.
    served: u64,
}

type ByUser = BTreeMap<String, BTreeSet<String>>;

/// The order of all waiting jobs.
#[derive(Debug, Default)]
pub struct Order {
    waiting: BTreeMap<(Class, u8), ByUser>,
    users: HashMap<String, User>,
    turn: u64,
}

impl Order {
    /// Adds a job that waits, and what its user may have running.
    pub fn push(&mut self, job: Waiting, running_limit: Option<u32>) {
        self.users.entry(job.user.clone()).or_default().running_limit = running_limit;
        let place = self.waiting.entry((job.class, job.priority)).or_default();
        place.entry(job.user).or_default().insert(job.job_id);
    }

    /// Notes that a user is served now.
    pub fn note_served(&mut self, user: &str) {
        self.turn += 1;
        self.users.entry(user.to_owned()).or_default().served = self.turn;
    }

    /// Takes the next job of a class; its user counts as served, and the job as running.
    pub fn take(&mut self, class: Class) -> Option<Waiting> {
        let users = &self.users;
        let (priority, user) =
            self.waiting
                .range((class, u8::MIN)..=(class, u8::MAX))
                .find_map(|((_, priority), by_user)| {
                    let may_run = by_user.keys().filter_map(|name| {
                        let user = users.get(name)?;
                        let is_free = user.running_limit.is_none_or(|limit| user.running < limit);
                        is_free.then_some((user.running, user.served, name))
                    });
                    may_run.min().map(|(_, _, name)| (*priority, name.clone()))
                })?;
        let job_id = self.waiting.get(&(class, priority))?.get(&user)?.first()?.clone();
        let job = Waiting {
            job_id,
            user,
            class,
            priority,
        };
        self.remove(&job);
        self.note_served(&job.user);
        self.users.entry(job.user.clone()).or_default().running += 1;
        Some(job)
    }

    /// Puts a job back that was taken.
    pub fn put_back(&mut self, job: Waiting) {
        self.note_ended(&job.user);
        let place = self.waiting.entry((job.class, job.priority)).or_default();
        place.entry(job.user).or_default().insert(job.job_id);
    }

    /// Removes a job that waits; whether it was there.
    pub fn remove(&mut self, job: &Waiting) -> bool {
        let place = (job.class, job.priority);
        let Some(by_user) = self.waiting.get_mut(&place) else {
            return false;
        };
        let Some(jobs) = by_user.get_mut(&job.user) else {
            return false;
        };
        let was_there = jobs.remove(&job.job_id);
        if jobs.is_empty() {
            by_user.remove(&job.user);
        }
        if by_user.is_empty() {
            self.waiting.remove(&place);
        }
        was_there
    }

    /// Notes that a job of a user runs that was not taken here.
    pub fn note_running(&mut self, user: &str) {
        self.users.entry(user.to_owned()).or_default().running += 1;
    }

    /// Notes that a running job of a user is over.
    pub fn note_ended(&mut self, user: &str) {
        if let Some(user) = self.users.get_mut(user) {
            user.running = user.running.saturating_sub(1);
        }
    }

    /// Jobs that wait for a class.
    pub fn waiting(&self, class: Class) -> usize {
        self.waiting
            .range((class, u8::MIN)..=(class, u8::MAX))
            .flat_map(|(_, by_user)| by_user.values())
            .map(BTreeSet::len)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(order: &mut Order, user: &str, number: u32, priority: u8) {
        let job = Waiting {
            job_id: format!("{number:05}"),
            user: user.to_owned(),
            class: Class::Cpu,
            priority,
        };
        order.push(job, None);
    }

    fn next(order: &mut Order) -> String {
        order.take(Class::Cpu).map_or(String::new(), |job| job.job_id)
    }

    #[test]
    fn priority_goes_before_age() {
        let mut order = Order::default();
        push(&mut order, "a", 1, 2);
        push(&mut order, "a", 2, 9);
        push(&mut order, "a", 3, 1);
        assert_eq!(
            [next(&mut order), next(&mut order), next(&mut order)],
            ["00003", "00001", "00002"]
        );
        assert_eq!(order.take(Class::Cpu), None);
    }

    #[test]
    fn a_user_with_many_jobs_does_not_keep_others_waiting() {
        let mut order = Order::default();
        (0..100).for_each(|number| push(&mut order, "many", number, 1));
        push(&mut order, "few", 100, 1);
        push(&mut order, "few", 101, 1);
        let taken: Vec<String> = (0..5).map(|_| next(&mut order)).collect();
        // Neither was served yet: the names decide. Then the one with fewer running jobs comes, then the one served longer ago.
        assert_eq!(taken, ["00100", "00000", "00101", "00001", "00002"]);
    }

    #[test]
    fn who_was_served_least_recently_comes_first() {
        let mut order = Order::default();
        for number in 0..3 {
            push(&mut order, "a", number, 1);
            push(&mut order, "b", 10 + number, 1);
        }
        let mut users = Vec::new();
        while let Some(job) = order.take(Class::Cpu) {
            order.note_ended(&job.user);
            users.push(job.user);
        }
        assert_eq!(users, ["a", "b", "a", "b", "a", "b"]);
    }

    #[test]
    fn a_quota_of_running_jobs_holds_and_lets_others_pass() {
        let mut order = Order::default();
        for number in 0..2 {
            let job = Waiting {
                job_id: format!("a{number}"),
                user: "a".to_owned(),
                class: Class::Cpu,
                priority: 1,
            };
            order.push(job, Some(1));
        }
        push(&mut order, "b", 7, 9);
        assert_eq!(
            [next(&mut order), next(&mut order), next(&mut order)],
            ["a0", "00007", ""]
        );
        order.note_ended("a");
        assert_eq!(next(&mut order), "a1");
    }

    #[test]
    fn classes_do_not_mix_and_jobs_can_be_removed() {
        let mut order = Order::default();
        let gpu = Waiting {
            job_id: "g".to_owned(),
            user: "a".to_owned(),
            class: Class::Gpu,
            priority: 1,
        };
        order.push(gpu.clone(), None);
        assert_eq!(order.take(Class::Cpu), None);
        assert_eq!(order.waiting(Class::Gpu), 1);
        assert!(order.remove(&gpu) && !order.remove(&gpu));
        assert_eq!(order.take(Class::Gpu), None);
    }
}
