// Command porcupine judges the versioned registers of a history with the checker Porcupine.
//
// It reads our histories, one JSON object a line, and prints one line: {"result":"Ok"}, or Illegal, or Unknown
// when the time was not enough. It shares no code with our own checker in Python, so that the two can disagree.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const lineBytesMax = 64 << 20

// line is one operation of the history's file. The nemesis' process is no number, and none of ours.
type line struct {
	Index   int             `json:"index"`
	Type    string          `json:"type"`
	Process json.RawMessage `json:"process"`
	F       string          `json:"f"`
	Value   json.RawMessage `json:"value"`
}

// said is the value of an operation on a register; what it does not say is nil.
type said struct {
	Key      any             `json:"key"`
	Version  *int64          `json:"version"`
	Expected *int64          `json:"expected"`
	Found    json.RawMessage `json:"found"`
	Value    any             `json:"value"`
}

type kind int

const (
	read kind = iota
	cas
	maybeCas
	refused
)

// call is what an operation did; values are kept as canonical JSON. The version is the one that the reply told,
// nil when it told none.
type call struct {
	key      string
	kind     kind
	version  *int64
	expected int64
	value    string
	// passed is true of an open operation if the register surely came to be past what it expected.
	passed bool
}

type register struct {
	version int64
	value   string
}

type options struct {
	read, cas string
	start     register
	step      int64
	refusals  bool
	timeout   time.Duration
}

func main() {
	history, opts, err := parse(os.Args[1:])
	if err == nil {
		err = judge(history, opts, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "porcupine:", err)
		os.Exit(2)
	}
}

func parse(arguments []string) (string, options, error) {
	var opts options
	flags := flag.NewFlagSet("porcupine", flag.ExitOnError)
	flags.StringVar(&opts.read, "read", "read", "the name of reads")
	flags.StringVar(&opts.cas, "cas", "cas", "the name of compare-and-set operations")
	flags.Int64Var(&opts.start.version, "version", 0, "the first version")
	value := flags.String("value", "null", "the first value, in JSON")
	flags.Int64Var(&opts.step, "step", 1, "how far apart versions are")
	flags.BoolVar(&opts.refusals, "refusals", false, "a refused cas is a look at the version it found")
	flags.DurationVar(&opts.timeout, "timeout", time.Minute, "how long to search")
	if err := flags.Parse(arguments); err != nil {
		return "", opts, err
	}
	if flags.NArg() != 1 {
		return "", opts, fmt.Errorf("give the path of one history")
	}
	var err error
	opts.start.value, err = canonical([]byte(*value))
	return flags.Arg(0), opts, err
}

func judge(path string, opts options, out io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	operations, err := operationsOf(file, opts)
	if err != nil {
		return err
	}
	result := porcupine.CheckOperationsTimeout(model(opts), operations, opts.timeout)
	return json.NewEncoder(out).Encode(map[string]any{"result": string(result), "operations": len(operations)})
}

// operationsOf pairs each invocation with its end. What has none stays open, and so does what ended as info.
func operationsOf(history io.Reader, opts options) ([]porcupine.Operation, error) {
	var operations []porcupine.Operation
	open := map[string]line{}
	add := func(invoke line, end *line) error {
		input, err := callOf(invoke, end, opts)
		if err != nil || input == nil {
			return err
		}
		returned := int64(math.MaxInt64)
		if end != nil && end.Type != "info" {
			returned = int64(end.Index)
		}
		operations = append(operations, porcupine.Operation{Input: *input, Call: int64(invoke.Index), Return: returned})
		return nil
	}
	lines := bufio.NewScanner(history)
	lines.Buffer(nil, lineBytesMax)
	for number := 0; lines.Scan(); number++ {
		var each line
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if each.F != opts.read && each.F != opts.cas {
			continue
		}
		process := string(each.Process)
		if each.Type == "invoke" {
			open[process] = each
			continue
		}
		invoke, known := open[process]
		if !known {
			return nil, fmt.Errorf("line %d: process %s ends what it did not invoke", number, process)
		}
		delete(open, process)
		if err := add(invoke, &each); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	for _, invoke := range open {
		if err := add(invoke, nil); err != nil {
			return nil, fmt.Errorf("line %d: %w", invoke.Index, err)
		}
	}
	return operations, lines.Err()
}

// callOf gives nil for an operation that left no trace.
func callOf(invoke line, end *line, opts options) (*call, error) {
	var asked, told said
	if err := json.Unmarshal(invoke.Value, &asked); err != nil {
		return nil, err
	}
	how := "info"
	if end != nil {
		how = end.Type
		if err := json.Unmarshal(end.Value, &told); err != nil && how == "ok" {
			return nil, err
		}
	}
	key, err := json.Marshal(asked.Key)
	if err != nil {
		return nil, err
	}
	if invoke.F == opts.read {
		if how != "ok" {
			return nil, nil
		}
		if told.Version == nil {
			return nil, fmt.Errorf("a read without a version")
		}
		value, err := json.Marshal(told.Value)
		return &call{key: string(key), kind: read, version: told.Version, value: string(value)}, err
	}
	if asked.Expected == nil {
		return nil, fmt.Errorf("a cas that expects no version")
	}
	value, err := json.Marshal(asked.Value)
	found := &call{key: string(key), expected: *asked.Expected, value: string(value)}
	switch {
	case how == "ok":
		found.kind, found.version = cas, told.Version
	case how == "info":
		found.kind = maybeCas
	case opts.refusals && told.Found != nil:
		found.kind = refused
		err = json.Unmarshal(told.Found, &found.version)
	default:
		return nil, err
	}
	return found, err
}

func model(opts options) porcupine.Model {
	return porcupine.Model{
		Partition: partition,
		Init:      func() any { return opts.start },
		Step: func(state, input, _ any) (bool, any) {
			return step(state.(register), input.(call), opts.step)
		},
	}
}

func partition(operations []porcupine.Operation) [][]porcupine.Operation {
	byKey := map[string][]porcupine.Operation{}
	for _, each := range operations {
		key := each.Input.(call).key
		byKey[key] = append(byKey[key], each)
	}
	parts := make([][]porcupine.Operation, 0, len(byKey))
	for _, part := range byKey {
		parts = append(parts, withoutIdle(part))
	}
	return parts
}

// withoutIdle leaves out open operations that no order needs, for each doubles the time of a search that fails.
// A version is replaced once: if a client got success for it, no other client did. And what replaced the last
// version that was seen changed nothing to see, unless a refusal does not say what it found.
func withoutIdle(operations []porcupine.Operation) []porcupine.Operation {
	replaced := map[int64]bool{}
	reached, vague := int64(math.MinInt64), false
	for _, each := range operations {
		input := each.Input.(call)
		switch {
		case input.kind == cas:
			replaced[input.expected] = true
			reached = max(reached, input.expected+1)
		case input.kind == refused && input.version == nil:
			vague = true
		case input.kind != maybeCas:
			reached = max(reached, *input.version)
		}
	}
	var kept []porcupine.Operation
	for _, each := range operations {
		input := each.Input.(call)
		if input.kind == maybeCas {
			input.passed = input.expected < reached
			if replaced[input.expected] || !(input.passed || vague) {
				continue
			}
			each.Input = input
		}
		kept = append(kept, each)
	}
	return kept
}

// step applies an operation. One that is open to the end may never have happened: it can then come after all
// others, where the version is past what it expected, if it ever comes so far, and changes nothing.
func step(state register, input call, distance int64) (bool, any) {
	switch input.kind {
	case read:
		return state == register{*input.version, input.value}, state
	case refused:
		known := input.version == nil || *input.version == state.version
		return known && state.version != input.expected, state
	}
	if state.version != input.expected {
		idle := state.version > input.expected || !input.passed
		return input.kind == maybeCas && idle, state
	}
	after := register{input.expected + distance, input.value}
	return input.version == nil || *input.version == after.version, after
}

// canonical writes a JSON value with its keys in order, so that equal values are equal strings.
func canonical(text []byte) (string, error) {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return "", err
	}
	written, err := json.Marshal(value)
	return string(written), err
}
