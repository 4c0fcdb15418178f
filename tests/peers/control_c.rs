//! MLGym #14: Ctrl-C sometimes did not end the program. The first press ends what is in flight and stops, the second stops at once;
//! both leave a store that a next process goes on with.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::gyms::Gym;

struct Search {
    child: Child,
    stderr: std::io::Lines<BufReader<ChildStderr>>,
}

impl Search {
    /// A search with a program in flight.
    fn start(gym: &Gym) -> Self {
        let arguments = [
            "evolve",
            "double",
            "--steps",
            "1000",
            "--workers",
            "1",
            "--seed",
            "1",
            "--id",
            "r",
        ];
        let mut child = gym
            .command(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let search = Self { child, stderr };
        let begin = Instant::now();
        while gym.number("SELECT count(*) AS n FROM sandbox.leases WHERE state = 'claimed'") == 0 {
            assert!(begin.elapsed() < Duration::from_secs(120), "no program was started");
        }
        search
    }

    fn press(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    #[track_caller]
    fn says(&mut self, text: &str) {
        let mut said = Vec::new();
        for line in self.stderr.by_ref().map_while(Result::ok) {
            if line.contains(text) {
                return;
            }
            said.push(line);
        }
        panic!("it never said '{text}', but\n{}", said.join("\n"));
    }

    fn ends(mut self) -> i32 {
        // Its end of the pipe closes with it.
        self.stderr.by_ref().map_while(Result::ok).for_each(drop);
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn the_first_control_c_finishes_what_is_in_flight_and_ends() {
    let gym = Gym::new();
    let mut search = Search::start(&gym);
    search.press();
    search.says("programs in flight are finished first");
    search.says("interrupted: step");
    assert_eq!(search.ends(), 0);
    assert!(gym.number("SELECT count(*) AS n FROM evo.nodes") > 0);
    assert_eq!(gym.number("SELECT count(*) AS n FROM sandbox.leases"), 0);
    assert_eq!(
        gym.number("SELECT count(*) AS n FROM evo.runs WHERE status = 'interrupted'"),
        1
    );
}

#[test]
fn the_second_control_c_ends_at_once_and_nothing_is_lost() {
    let gym = Gym::new();
    // The program in flight would take for ever.
    let metric = gym.package().join("utils/metric.py");
    std::fs::write(metric, "import time\ntime.sleep(100_000)\n").unwrap();
    let mut search = Search::start(&gym);
    search.press();
    search.says("press Ctrl-C again");
    search.press();
    search.says("goes back into the queue");
    assert_eq!(search.ends(), 130);
    assert_eq!(gym.number("SELECT count(*) AS n FROM evo.nodes"), 0);
    let waiting =
        "SELECT count(*) AS n FROM sandbox.leases WHERE kind = 'attempt' AND state = 'planned' AND owner IS NULL";
    assert_eq!(gym.number(waiting), 1);
    assert_eq!(
        gym.number("SELECT count(*) AS n FROM evo.runs WHERE status = 'interrupted'"),
        1
    );
}
