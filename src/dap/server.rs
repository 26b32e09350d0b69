//! The protocol: what editors ask, and what they are answered.

use super::configuration::Configuration;
use super::expression::Expression;
use super::listing;
use super::program::Program;
use super::session::Session;
use super::stops::{Breakpoint, Mode, Step, Stops};
use super::transport::{Client, Incoming, read};
use super::variables::{self, Handle, Variable};
use krn_runtime::emulator::debug::Moment;
use serde_json::{Value, json};
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

/// Most handles that are kept while a kernel stands still.
const MOST_HANDLES: usize = 1 << 20;

const RUNS: &str = "the kernel runs: nothing can be seen before it stops";

/// Speaks the protocol over standard input and output, until the other side is gone or has had enough.
pub fn serve() {
    let client = Arc::new(Client::new(std::io::stdout()));
    Server {
        client,
        session: None,
        configuration: None,
        breakpoints: Vec::new(),
        next_id: 1,
        handles: Vec::new(),
    }
    .run(&mut std::io::stdin().lock());
}

struct Server {
    client: Arc<Client>,
    session: Option<Arc<Session>>,
    configuration: Option<Configuration>,
    /// Breakpoints as the editor has set them, by file.
    breakpoints: Vec<(String, Vec<Value>)>,
    next_id: i64,
    /// What variables are in: numbers from 1 on, good until the kernel goes on.
    handles: Vec<Handle>,
}

type Answer = Result<Value, String>;

impl Server {
    fn run(mut self, input: &mut impl BufRead) {
        loop {
            match read(input) {
                Incoming::End => break,
                Incoming::Garbage(words) => self.client.say("stderr", &format!("krn dap: {words}")),
                Incoming::Message(message) => {
                    if message["type"] != "request" {
                        continue;
                    }
                    let command = message["command"].as_str().unwrap_or_default().to_string();
                    let answer = self.answer(&command, &message["arguments"]);
                    let good = answer.is_ok();
                    self.client.respond(&message, answer);
                    match command.as_str() {
                        "launch" if good => self.client.event("initialized", json!({})),
                        "disconnect" => break,
                        _ => {}
                    }
                }
            }
        }
        if let Some(session) = &self.session {
            session.end();
        }
    }

    fn answer(&mut self, command: &str, arguments: &Value) -> Answer {
        match command {
            "initialize" => Ok(capabilities()),
            "launch" => self.launch(arguments),
            "attach" => Err("there is nothing to attach to: use a launch configuration".to_string()),
            "setBreakpoints" => self.set_breakpoints(arguments),
            "setExceptionBreakpoints" => Ok(json!({ "breakpoints": [] })),
            "setFunctionBreakpoints" | "setInstructionBreakpoints" | "setDataBreakpoints" => {
                Ok(json!({ "breakpoints": [] }))
            }
            "configurationDone" => self.start(),
            "threads" => self.threads(),
            "stackTrace" => self.stack(arguments),
            "scopes" => self.scopes(arguments),
            "variables" => self.variables(arguments),
            "evaluate" => self.evaluate(arguments),
            "exceptionInfo" => self.exception(),
            "disassemble" => self.disassemble(arguments),
            "source" => Err("the source is a file".to_string()),
            "continue" => {
                self.go(Mode::Run)?;
                Ok(json!({ "allThreadsContinued": true }))
            }
            "next" => self.step(Step::Over, arguments),
            "stepIn" => self.step(Step::Into, arguments),
            "stepOut" => self.step(Step::Out, arguments),
            "pause" => {
                self.session()?.pause();
                Ok(Value::Null)
            }
            "terminate" | "disconnect" => {
                if let Some(session) = &self.session {
                    session.end();
                }
                Ok(Value::Null)
            }
            other => Err(format!("`{other}` is not supported")),
        }
    }

    fn session(&self) -> Result<&Arc<Session>, String> {
        self.session.as_ref().ok_or_else(|| "nothing is being debugged: `launch` comes first".to_string())
    }

    fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Program, &Moment<'_>) -> T + Send + 'static,
    ) -> Result<T, String> {
        let session = self.session()?;
        let program = Arc::clone(&session.program);
        session.look(move |moment| look(&program, moment)).ok_or_else(|| RUNS.to_string())
    }

    fn launch(&mut self, arguments: &Value) -> Answer {
        if self.session.is_some() {
            return Err("a kernel is being debugged already".to_string());
        }
        let configuration = Configuration::parse(arguments)?;
        let program = Arc::new(Program::load(&configuration)?);
        let sizes: Vec<String> =
            program.sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        let kernel = &program.kernel().name;
        self.client.say("console", &format!("{kernel} with {} on the emulator", sizes.join(", ")));
        for warning in program.compilation.warnings.iter() {
            self.client.say("console", &warning.message);
        }
        let stops = Stops::new(&configuration);
        let client = Arc::clone(&self.client);
        self.session = Some(Session::new(program, client, stops, configuration.no_debug));
        self.configuration = Some(configuration);
        // What was set before there was a program.
        for (path, list) in std::mem::take(&mut self.breakpoints) {
            for breakpoint in self.placed(&path, &list) {
                self.client.event("breakpoint", json!({ "reason": "changed", "breakpoint": breakpoint }));
            }
        }
        Ok(Value::Null)
    }

    fn start(&mut self) -> Answer {
        let session = Arc::clone(self.session()?);
        let Some(configuration) = self.configuration.take() else {
            return Err("the kernel has been started already".to_string());
        };
        session
            .start(configuration.sanitize)
            .map_err(|error| format!("no thread for the kernel: {error}"))?;
        Ok(Value::Null)
    }

    fn set_breakpoints(&mut self, arguments: &Value) -> Answer {
        let path = arguments["source"]["path"].as_str().unwrap_or_default().to_string();
        let list: Vec<Value> = arguments["breakpoints"].as_array().cloned().unwrap_or_default();
        if self.session.is_some() {
            return Ok(json!({ "breakpoints": self.placed(&path, &list) }));
        }
        let later = json!({ "verified": false, "message": "placed when the kernel is compiled" });
        let answer = vec![later; list.len()];
        self.breakpoints.retain(|(known, _)| *known != path);
        self.breakpoints.push((path, list));
        Ok(json!({ "breakpoints": answer }))
    }

    /// Places the breakpoints of a file, in place of those that it had; what became of each.
    fn placed(&mut self, path: &str, list: &[Value]) -> Vec<Value> {
        let Some(session) = self.session.clone() else { return Vec::new() };
        let program = &session.program;
        if !same_file(Path::new(path), &program.path) {
            let other = json!({ "verified": false, "message": "another file is being debugged" });
            return vec![other; list.len()];
        }
        let mut placed = Vec::new();
        let mut told = Vec::with_capacity(list.len());
        for asked in list {
            let id = self.next_id;
            self.next_id += 1;
            match breakpoint(program, id, asked) {
                Ok(breakpoint) => {
                    told.push(json!({ "id": id, "verified": true, "line": breakpoint.line }));
                    placed.push(breakpoint);
                }
                Err(message) => told.push(json!({ "id": id, "verified": false, "message": message })),
            }
        }
        session.stops().breakpoints = placed;
        told
    }

    fn go(&mut self, mode: Mode) -> Result<(), String> {
        self.handles.clear();
        match self.session()?.go(mode) {
            true => Ok(()),
            false => Err("the kernel runs".to_string()),
        }
    }

    fn step(&mut self, step: Step, arguments: &Value) -> Answer {
        let step = if arguments["granularity"] == "instruction" { Step::Instruction } else { step };
        let lane = lane_of(&arguments["threadId"])?;
        let line = self.look(move |_, moment| {
            let is_here = lane < moment.lanes() && moment.active >> lane & 1 == 1;
            is_here.then(|| moment.launch.line(moment.pc))
        })?;
        let line = line
            .ok_or_else(|| format!("lane {lane} waits on another path: step a lane that is on this one"))?;
        if let Some(focus) = &mut self.session()?.stops().focus {
            focus.lane = lane;
        }
        self.go(Mode::Step(step, line))?;
        Ok(Value::Null)
    }

    /// The lanes of the warp in focus; while nothing has stopped, the kernel.
    fn threads(&self) -> Answer {
        let lanes = self.look(|_, moment| {
            let lane = |lane: usize| {
                let [x, y, z] = moment.thread_position(lane);
                let waits = if moment.active >> lane & 1 == 1 { "" } else { " · waits" };
                json!({ "id": lane + 1, "name": format!("lane {lane} · thread ({x}, {y}, {z}){waits}") })
            };
            (0..moment.lanes()).map(lane).collect::<Vec<_>>()
        });
        match lanes {
            Ok(lanes) => Ok(json!({ "threads": lanes })),
            Err(_) => Ok(json!({ "threads": [{ "id": 1, "name": "kernel" }] })),
        }
    }

    fn stack(&self, arguments: &Value) -> Answer {
        let lane = lane_of(&arguments["threadId"])?;
        self.look(move |program, moment| {
            let [x, y, z] = moment.block_position();
            let place = format!("block ({x}, {y}, {z}) warp {} lane {lane}", moment.warp);
            let location = moment.launch.location(moment.pc);
            let waits = lane >= moment.lanes() || moment.active >> lane & 1 == 0;
            let frame = match location {
                _ if waits => json!({ "id": lane + 1, "name": format!("waits on another path · {place}"), "line": 0, "column": 0 }),
                None => json!({ "id": lane + 1, "name": place, "line": 0, "column": 0 }),
                Some(location) => {
                    let item = program.item(location.line).unwrap_or(&program.kernel().name);
                    json!({
                        "id": lane + 1,
                        "name": format!("{item} · {place}"),
                        "source": listing::source(program),
                        "line": location.line,
                        "column": location.column.max(1),
                        "instructionPointerReference": listing::address(moment.pc as i64),
                    })
                }
            };
            json!({ "stackFrames": [frame], "totalFrames": 1 })
        })
    }

    fn scopes(&mut self, arguments: &Value) -> Answer {
        let lane = lane_of(&arguments["frameId"])?;
        self.look(|_, _| ())?;
        let mut found = Vec::new();
        for (name, handle, expensive) in variables::scopes(lane) {
            let hint = match handle {
                Handle::Names(_) => "locals",
                Handle::Ptx(_) => "registers",
                _ => "arguments",
            };
            let reference = self.reference(handle);
            found.push(json!({
                "name": name, "variablesReference": reference, "expensive": expensive, "presentationHint": hint,
            }));
        }
        Ok(json!({ "scopes": found }))
    }

    fn reference(&mut self, handle: Handle) -> usize {
        if self.handles.len() >= MOST_HANDLES {
            return 0;
        }
        self.handles.push(handle);
        self.handles.len()
    }

    fn variables(&mut self, arguments: &Value) -> Answer {
        let number = arguments["variablesReference"].as_u64().unwrap_or(0) as usize;
        let handle = number.checked_sub(1).and_then(|at| self.handles.get(at)).cloned();
        let handle = handle.ok_or("that is not known any more: the kernel has gone on")?;
        let range = (arguments["start"].as_u64().unwrap_or(0), arguments["count"].as_u64());
        let found = self.look(move |program, moment| variables::inside(&handle, program, moment, range))?;
        let found: Vec<Value> = found.into_iter().map(|variable| self.variable(variable)).collect();
        Ok(json!({ "variables": found }))
    }

    fn variable(&mut self, variable: Variable) -> Value {
        let Variable { name, value, ty, expression, inside, indexed } = variable;
        let reference = inside.map_or(0, |handle| self.reference(handle));
        let mut told = json!({ "name": name, "value": value, "type": ty, "variablesReference": reference });
        if let Some(expression) = expression {
            told["evaluateName"] = expression.into();
        }
        if let Some(indexed) = indexed {
            told["indexedVariables"] = indexed.into();
        }
        told
    }

    fn evaluate(&mut self, arguments: &Value) -> Answer {
        let text = arguments["expression"].as_str().unwrap_or_default().to_string();
        let expression = Expression::parse(&text)?;
        let frame = &arguments["frameId"];
        let focus = self.session()?.stops().focus.map_or(0, |focus| focus.lane);
        let lane = if frame.is_null() { focus } else { lane_of(frame)? };
        let found = self.look(move |program, moment| match expression.evaluate(program, moment, lane) {
            Ok(value) => Ok((value.to_string(), Some(Handle::Lanes(expression.text)), None)),
            Err(reason) => {
                let array = expression.name().and_then(|name| variables::array(program, moment, name, lane));
                array.map(|array| (array.value, array.inside, array.indexed)).ok_or(reason)
            }
        })?;
        let (result, inside, indexed) = found?;
        let reference = inside.map_or(0, |handle| self.reference(handle));
        let mut told = json!({ "result": result, "variablesReference": reference });
        if let Some(indexed) = indexed {
            told["indexedVariables"] = indexed.into();
        }
        Ok(told)
    }

    fn exception(&self) -> Answer {
        let stop = self.session()?.last_stop();
        let text = stop.and_then(|stop| stop.text).ok_or("there is no failure")?;
        Ok(json!({
            "exceptionId": text.lines().next().unwrap_or_default(),
            "description": text,
            "breakMode": "always",
        }))
    }

    fn disassemble(&self, arguments: &Value) -> Answer {
        let reference = arguments["memoryReference"].as_str().unwrap_or_default();
        let address =
            listing::place(reference).ok_or_else(|| format!("`{reference}` is no place in the PTX"))?;
        let number = |name: &str| arguments[name].as_i64().unwrap_or(0);
        // Instructions are one place long.
        let offset = number("instructionOffset").saturating_add(number("offset"));
        let count = number("instructionCount");
        self.look(move |program, moment| listing::disassembly(program, moment, address, offset, count))
    }
}

fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsEvaluateForHovers": true,
        "supportsDisassembleRequest": true,
        "supportsSteppingGranularity": true,
        "supportsExceptionInfoRequest": true,
        "supportsTerminateRequest": true,
    })
}

/// The lane of a thread or a frame, which are numbered from 1 on.
fn lane_of(id: &Value) -> Result<usize, String> {
    let lane = id.as_u64().and_then(|id| id.checked_sub(1)).filter(|lane| *lane < 32);
    lane.map(|lane| lane as usize).ok_or_else(|| format!("there is no thread {id}"))
}

fn breakpoint(program: &Program, id: i64, asked: &Value) -> Result<Breakpoint, String> {
    let text = |name: &str| asked[name].as_str().map(str::trim).filter(|text| !text.is_empty());
    let line = asked["line"].as_u64().and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
    let line = program.line_for(line).ok_or_else(|| {
        format!("line {line} is no code of `{}`: the kernel that is being debugged", program.kernel().name)
    })?;
    let condition = text("condition").map(Expression::parse).transpose()?;
    let from = match text("hitCondition") {
        None => 1,
        Some(count) => {
            let number = count.trim_start_matches(['>', '=', ' ']).parse();
            number.map_err(|_| format!("`{count}` is no count: write a number"))?
        }
    };
    let message = text("logMessage").map(str::to_string);
    Ok(Breakpoint { id, line, condition, from, message, hits: 0 })
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}
