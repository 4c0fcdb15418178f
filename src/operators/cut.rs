//! What is left out of a prompt that is too long, and in which order. The task, the rules of a run and the parents' programs are
//! never cut.

use super::facts::PromptFacts;
use crate::templates::tail;

/// Columns of a table, and files, that are kept by the first cut of them.
const FEWER_COLUMNS: usize = 20;
const FEWER_FILES: usize = 20;
/// Characters of the failing program's last words that are kept.
const ERROR_TAIL: usize = 800;

/// Something that can be left out. Nodes are meant by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Change(usize),
    Error(usize),
    Words(usize),
    Samples,
    Columns,
    Files,
    Board,
    Node(usize),
    OwnError,
    Guidance,
    ColumnFacts,
    GeneralSkill,
    TaskSkill,
}

/// Everything that can be cut from a prompt whose first nodes are the parents: what helps least first.
pub(super) fn order(facts: &PromptFacts, parents: usize) -> Vec<Cut> {
    // The last of a kind is the farthest ancestor, or the relative or failure that says least.
    let last_first = |roles: &[&str]| -> Vec<usize> {
        roles
            .iter()
            .flat_map(|role| {
                (parents..facts.nodes.len())
                    .rev()
                    .filter(move |place| facts.nodes[*place].role == *role)
            })
            .collect()
    };
    let relatives = last_first(&["sibling", "child", "ancestor"]);
    let failures = last_first(&["recent_error", "same_error"]);
    let nodes = |places: &[usize], cut: fn(usize) -> Cut| places.iter().map(|place| cut(*place)).collect::<Vec<_>>();
    let mut all = Vec::new();
    all.extend(nodes(&relatives, Cut::Change));
    all.extend(nodes(&relatives, Cut::Error));
    all.extend(nodes(&failures, Cut::Error));
    all.extend(nodes(&relatives, Cut::Words));
    all.extend(nodes(&failures, Cut::Words));
    all.extend([Cut::Samples, Cut::Columns, Cut::Files, Cut::Board]);
    // Places stay what they are while the last ones go first.
    all.extend((parents..facts.nodes.len()).rev().map(Cut::Node));
    all.extend([
        Cut::OwnError,
        Cut::Guidance,
        Cut::ColumnFacts,
        Cut::GeneralSkill,
        Cut::TaskSkill,
    ]);
    all.retain(|cut| cut.is_there(facts));
    all
}

impl Cut {
    fn is_there(self, facts: &PromptFacts) -> bool {
        let node = |place: usize| facts.nodes.get(place);
        let columns = |most: usize| facts.data.files.iter().any(|file| file.column_facts.len() > most);
        match self {
            Self::Change(place) => node(place).is_some_and(|node| node.change.is_some()),
            Self::Error(place) => node(place).is_some_and(|node| node.error.is_some()),
            Self::Words(place) => node(place).is_some_and(|node| {
                node.plan.is_some() || node.method_overview.is_some() || node.parent_comparison_experience.is_some()
            }),
            Self::Samples => facts
                .data
                .files
                .iter()
                .any(|file| file.column_facts.iter().any(|column| !column.samples.is_empty())),
            Self::Columns => columns(FEWER_COLUMNS),
            Self::Files => facts.data.files.len() > FEWER_FILES,
            Self::Board => !facts.board.families.is_empty(),
            Self::Node(_) => true,
            Self::OwnError => node(0)
                .is_some_and(|node| node.is_buggy && node.error.as_ref().is_some_and(|error| error.len() > ERROR_TAIL)),
            Self::Guidance => facts.guidance,
            Self::ColumnFacts => columns(0),
            Self::GeneralSkill => facts.skills.general.is_some(),
            Self::TaskSkill => facts.skills.task.is_some(),
        }
    }

    pub(super) fn apply(self, facts: &mut PromptFacts) {
        match self {
            Self::Change(place) => facts.nodes[place].change = None,
            Self::Error(place) => facts.nodes[place].error = None,
            Self::Words(place) => {
                let node = &mut facts.nodes[place];
                (node.plan, node.method_overview, node.parent_comparison_experience) = (None, None, None);
            }
            Self::Samples => facts
                .data
                .files
                .iter_mut()
                .flat_map(|file| &mut file.column_facts)
                .for_each(|column| column.samples.clear()),
            Self::Columns => keep_columns(facts, FEWER_COLUMNS),
            Self::Files => {
                let more = facts.data.files.len() - FEWER_FILES;
                facts.data.files.truncate(FEWER_FILES);
                facts.data.files_left_out += more as i64;
            }
            Self::Board => facts.board = Default::default(),
            Self::Node(place) => {
                facts.nodes.remove(place);
            }
            Self::OwnError => {
                if let Some(error) = &mut facts.nodes[0].error {
                    *error = tail(error, ERROR_TAIL);
                }
            }
            Self::Guidance => facts.guidance = false,
            Self::ColumnFacts => keep_columns(facts, 0),
            Self::GeneralSkill => facts.skills.general = None,
            Self::TaskSkill => facts.skills.task = None,
        }
    }

    /// The cut in words, as `evo.generations` keeps it.
    pub(super) fn describe(self, facts: &PromptFacts) -> String {
        let node = |place: usize| {
            facts
                .nodes
                .get(place)
                .map_or_else(String::new, |node| format!("{} {}", node.role, node.node_id))
        };
        match self {
            Self::Change(place) => format!("change of {}", node(place)),
            Self::Error(place) => format!("log of {}", node(place)),
            Self::Words(place) => format!("words of {}", node(place)),
            Self::Samples => "sample values of the data".to_owned(),
            Self::Columns => format!("columns beyond {FEWER_COLUMNS} of a table"),
            Self::Files => format!("files beyond {FEWER_FILES}"),
            Self::Board => "board".to_owned(),
            Self::Node(place) => node(place),
            Self::OwnError => format!("log of the failed program before its last {ERROR_TAIL} characters"),
            Self::Guidance => "guidance".to_owned(),
            Self::ColumnFacts => "columns of the data".to_owned(),
            Self::GeneralSkill => "general skill".to_owned(),
            Self::TaskSkill => "skill of the task".to_owned(),
        }
    }
}

/// Keeps the first columns of every table.
fn keep_columns(facts: &mut PromptFacts, most: usize) {
    for file in &mut facts.data.files {
        let more = file.column_facts.len().saturating_sub(most);
        file.column_facts.truncate(most);
        file.columns_left_out += more as i64;
    }
}
