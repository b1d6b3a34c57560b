// SPDX-License-Identifier: Apache-2.0

package confirm

import "slices"

// State is the state of a record, by its name on the wire. The set is closed.
type State string

// The states.
const (
	Created    State = "Created"    // no challenge yet
	Challenged State = "Challenged" // waits for the answer of the user
	Confirmed  State = "Confirmed"  // may be carried out, once
	Declined   State = "Declined"   // by the user
	Cancelled  State = "Cancelled"  // by the client, or because the account changed
	Expired    State = "Expired"    // neither confirmed nor carried out in time
	Completed  State = "Completed"  // carried out
	Error      State = "Error"      // too many wrong answers, or it can never be carried out
)

// States lists all states.
func States() []State {
	return []State{Created, Challenged, Confirmed, Declined, Cancelled, Expired, Completed, Error}
}

// Final reports whether no step leads out of the state.
func (s State) Final() bool {
	return !slices.ContainsFunc(transitions, func(t transition) bool { return t.from == s })
}

// Step is something that changes the state.
type Step string

// The steps.
const (
	StepChallenge Step = "challenge" // a challenge begins or is repeated
	StepConfirm   Step = "confirm"   // the right answer
	StepDecline   Step = "decline"
	StepExhaust   Step = "exhaust" // the last wrong answer
	StepCancel    Step = "cancel"
	StepExpire    Step = "expire"
	StepComplete  Step = "complete" // carried out
	StepFail      Step = "fail"     // the execution failed for good
)

// Steps lists all steps.
func Steps() []Step {
	return []Step{StepChallenge, StepConfirm, StepDecline, StepExhaust, StepCancel, StepExpire, StepComplete, StepFail}
}

type transition struct {
	from State
	step Step
	to   State
}

// transitions is the state machine. A step that is not in a row is refused.
var transitions = []transition{
	{Created, StepChallenge, Challenged},
	{Created, StepDecline, Declined},
	{Created, StepCancel, Cancelled},
	{Created, StepExpire, Expired},
	{Challenged, StepChallenge, Challenged},
	{Challenged, StepConfirm, Confirmed},
	{Challenged, StepDecline, Declined},
	{Challenged, StepExhaust, Error},
	{Challenged, StepCancel, Cancelled},
	{Challenged, StepExpire, Expired},
	{Confirmed, StepComplete, Completed},
	{Confirmed, StepFail, Error},
	{Confirmed, StepCancel, Cancelled},
	{Confirmed, StepExpire, Expired},
}

// After returns the state that a step leads to, and reports whether the step is allowed.
func (s State) After(step Step) (State, bool) {
	for _, t := range transitions {
		if t.from == s && t.step == step {
			return t.to, true
		}
	}
	return s, false
}

// leads returns the states that a step leads from, and the one that it leads to.
func leads(step Step) (from []State, to State) {
	for _, t := range transitions {
		if t.step == step {
			from, to = append(from, t.from), t.to
		}
	}
	return from, to
}
