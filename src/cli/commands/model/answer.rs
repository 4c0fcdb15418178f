//! `clade model generate` and `clade model chat`: what a model writes, as it writes it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use clade_lm_api::messages::{Event, Generate, Message, Prompt};
use clap::Args;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::signal::ctrl_c;
use tokio::task::block_in_place;

use super::bars::GenerationBar;
use super::weights::{SamplingArgs, WeightsArgs};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::output::standard_output;
use crate::cli::terminal::{Look, note};
use crate::model::torch::LoadedModel;

/// Arguments of `clade model generate`.
#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    #[command(flatten)]
    weights: WeightsArgs,
    /// Text that is continued; without it, or with -, standard input.
    prompt: Option<String>,
    /// Number of answers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    samples: u32,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// Arguments of `clade model chat`.
#[derive(Debug, Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    weights: WeightsArgs,
    /// Say this, print the answer and end; without it, lines of the terminal or of standard input.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Standing instructions.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// Continues a text.
pub(super) async fn generate(args: GenerateArgs, context: &Context) -> Result<(), CliError> {
    let prompt = match args.prompt.filter(|prompt| prompt != "-") {
        Some(prompt) => prompt,
        None => {
            let mut text = String::new();
            block_in_place(|| io::stdin().read_to_string(&mut text)).map_err(CliError::file("standard input"))?;
            text
        }
    };
    let model = args.weights.loaded(context).await?;
    let mut request = request(&model, Prompt::Text(prompt), &args.sampling);
    request.samples = args.samples as usize;
    write_answers(&model, &request, context).await.map(drop)
}

/// Talks.
pub(super) async fn chat(args: ChatArgs, context: &Context) -> Result<(), CliError> {
    let model = args.weights.loaded(context).await?;
    let mut messages = Vec::new();
    messages.extend(args.system.map(|content| message("system", content)));
    if let Some(said) = args.message {
        messages.push(message("user", said));
        return answer(&model, messages, &args.sampling, context).await.map(drop);
    }
    let mut lines = Lines::open()?;
    let mark = context.stderr.paint(Look::Bold, "> ");
    while let Some(said) = lines.next(&mark)? {
        if said.trim().is_empty() {
            continue;
        }
        messages.push(message("user", said));
        let said = answer(&model, messages.clone(), &args.sampling, context).await?;
        messages.push(message("assistant", said));
    }
    Ok(())
}

async fn answer(
    model: &Arc<LoadedModel>,
    messages: Vec<Message>,
    sampling: &SamplingArgs,
    context: &Context,
) -> Result<String, CliError> {
    let prompt = Prompt::Chat {
        messages,
        variables: BTreeMap::new(),
    };
    let answers = write_answers(model, &request(model, prompt, sampling), context).await?;
    Ok(answers.into_iter().next().unwrap_or_default())
}

fn message(role: &str, content: String) -> Message {
    Message {
        role: role.to_owned(),
        content,
    }
}

fn request(model: &LoadedModel, prompt: Prompt, args: &SamplingArgs) -> Generate {
    Generate {
        model: model.handle(),
        prompt,
        samples: 1,
        max_tokens: args.max_tokens.map(|count| count as usize),
        sampling: args.sampling(),
        stop: args.stop.clone(),
        logprobs: None,
        priority: 0,
    }
}

/// Prints one answer as it comes, several one after the other. Ctrl-C ends them.
async fn write_answers(
    model: &Arc<LoadedModel>,
    request: &Generate,
    context: &Context,
) -> Result<Vec<String>, CliError> {
    let failed = |error: String| CliError::Failed(error);
    let begin = Instant::now();
    let mut answers = model.generate(request).map_err(|error| failed(error.to_string()))?;
    let mut texts = vec![String::new(); request.samples];
    let mut output = standard_output();
    let (mut tokens, mut is_cut) = (0_usize, false);
    let mut first = None;
    let mut bar = GenerationBar::new(context, request);
    loop {
        let event = tokio::select! {
            event = answers.next() => event,
            _ = ctrl_c() => return Err(CliError::Interrupted),
        };
        let (sample, text) = match event {
            None => break,
            Some(Event::Token { sample, text, .. }) => {
                tokens += 1;
                bar.token();
                first.get_or_insert_with(|| begin.elapsed());
                (sample, text)
            }
            Some(Event::End {
                sample,
                text,
                reason,
                fault,
                ..
            }) => {
                if let Some(fault) = fault {
                    return Err(failed(fault.to_string()));
                }
                is_cut |= reason == "length";
                (sample, text)
            }
        };
        if request.samples == 1 {
            output.write_all(text.as_bytes())?;
            output.flush()?;
        }
        if let Some(answer) = texts.get_mut(sample) {
            answer.push_str(&text);
        }
    }
    drop(bar);
    if request.samples == 1 {
        output.write_all(b"\n")?;
    } else {
        for (number, text) in texts.iter().enumerate() {
            writeln!(output, "──── {} ────\n{text}", number + 1)?;
        }
    }
    output.flush()?;
    let seconds = begin.elapsed().as_secs_f64();
    note(format!(
        "{} tokens of prompt, {tokens} of answer in {seconds:.1} s ({:.1} a second, the first after {:.2} s), seed {}{}",
        answers.begun().prompt_tokens,
        tokens as f64 / seconds.max(1e-9),
        first.unwrap_or_default().as_secs_f64(),
        answers.begun().seed,
        if is_cut { "; cut off at its longest" } else { "" }
    ));
    Ok(texts)
}

/// Lines of a person, or of a file.
enum Lines {
    Person(Box<DefaultEditor>),
    File(io::Lines<io::StdinLock<'static>>),
}

impl Lines {
    fn open() -> Result<Self, CliError> {
        if io::stdin().is_terminal() {
            let editor = DefaultEditor::new().map_err(|error| CliError::Failed(error.to_string()))?;
            return Ok(Self::Person(Box::new(editor)));
        }
        Ok(Self::File(io::stdin().lock().lines()))
    }

    /// The next line; none at the end.
    fn next(&mut self, mark: &str) -> Result<Option<String>, CliError> {
        match self {
            Self::Person(editor) => match block_in_place(|| editor.readline(mark)) {
                Ok(line) => Ok(Some(line)),
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
                Err(error) => Err(CliError::Failed(error.to_string())),
            },
            Self::File(lines) => block_in_place(|| lines.next())
                .transpose()
                .map_err(CliError::file("standard input")),
        }
    }
}
