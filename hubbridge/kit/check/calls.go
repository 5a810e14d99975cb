package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

const (
	// callTimeout is the timeout_ms of requests.
	callTimeout = 10 * time.Second
	// maxResponseBytes is the size of the largest response that the service accepts.
	maxResponseBytes = 1 << 20
)

// call is a request and its response.
type call struct {
	id     string
	method string
	// done is whether the call has ended: with a response, or without one.
	done bool
	// payload is the response; nil for none.
	payload []byte
	// result is the result; nil if the response is an error or malformed.
	result []byte
	// err is the error of the response.
	err protocol.Error
}

// text describes the response, for details of failures.
func (a *call) text() string {
	switch {
	case a.payload == nil:
		return fmt.Sprintf("no response to %s within %v", a.method, callTimeout)
	case a.err.Type != "":
		return fmt.Sprintf("%s was answered with the error %s", a.method, a.err.Type)
	case a.result == nil:
		return fmt.Sprintf("%s was answered with a malformed response", a.method)
	default:
		return fmt.Sprintf("%s was answered with a result", a.method)
	}
}

// begin sends a request. The caller must wait for the call. extra adds members that version 1 does
// not have.
func (c *Check) begin(method string, params any, extra bool) *call {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(
			fmt.Sprintf("hubcheck: encode the params of %s: %v", method, err),
		) // they are constants
	}
	c.lastCall++
	a := &call{id: fmt.Sprintf("check-%d", c.lastCall), method: method}
	token := fmt.Sprintf("check/k%d", c.lastCall) // two levels: tokens may have several
	if c.conn == nil {
		a.done = true
		return a
	}
	c.calls[token] = a
	request, err := json.Marshal(protocol.Request{
		ID: a.id, Token: token, Method: method, Params: raw, TimeoutMS: callTimeout.Milliseconds(),
	})
	if err != nil {
		panic(fmt.Sprintf("hubcheck: encode %s: %v", method, err)) // as above
	}
	if extra {
		request = append(bytes.TrimSuffix(request, []byte("}")), `,"later":[1,{"version":2}]}`...)
	}
	c.publish(c.conn, "request", request)
	return a
}

// call sends a request and waits for the end of the call. While the hub is not ready, it repeats
// the request.
func (s *script) call(method string, params any) *call {
	for {
		a := s.begin(method, params, false)
		s.wait(s.ctx, a)
		if !s.askAgain(a) {
			return a
		}
	}
}

// readyPause is the time between two requests to a hub that is not ready.
const readyPause = 3 * time.Second

// askAgain reports whether a request is to be repeated, after a pause, because the hub answered
// hub_unavailable: a radio needs a while after a start. It does so for Config.ReadyWait in all.
func (s *script) askAgain(a *call) bool {
	if a.err.Type != protocol.ErrorHubUnavailable {
		return false
	}
	if s.target != nil && s.unready == nil {
		command := s.newCommand()
		tried := s.begin(protocol.MethodChannelsCommand, command, false)
		s.wait(s.ctx, tried)
		if tried.err.Type == protocol.ErrorHubUnavailable {
			s.unready = &command // checkCommand repeats it
		}
	}
	if s.waited >= s.cfg.ReadyWait {
		s.note(s.notReady())
		return false
	}
	s.note(fmt.Sprintf(
		"the hub answers %s: its radio is not ready, or it does not know the time yet; asking again "+
			"for %v", protocol.ErrorHubUnavailable, s.cfg.ReadyWait,
	))
	begun := time.Now()
	s.await(s.ctx, min(readyPause, s.cfg.ReadyWait-s.waited), func() bool { return false })
	s.waited += time.Since(begun)
	return s.ctx.Err() == nil
}

// notReady states that the hub has not become ready.
func (s *script) notReady() string {
	return fmt.Sprintf(
		"the hub still answered %s after %v; repeat the check when its radio is ready",
		protocol.ErrorHubUnavailable, s.cfg.ReadyWait,
	)
}

// wait waits for the ends of calls: their responses, the timeout, counted from now, or the end of
// the connection.
func (c *Check) wait(ctx context.Context, calls ...*call) {
	c.await(ctx, callTimeout, func() bool {
		return c.conn == nil || !slices.ContainsFunc(calls, func(a *call) bool { return !a.done })
	})
	for token, a := range c.calls {
		if slices.Contains(calls, a) {
			a.done = true
			delete(c.calls, token)
		}
	}
}

// handleResponse checks a response and gives it to its call.
func (c *Check) handleResponse(token string, payload []byte) {
	if len(payload) > maxResponseBytes {
		c.fail(
			"response-form", payload, "the response has %d bytes; the service rejects it",
			len(payload),
		)
	}
	response, err := codec.ParseResponse(payload)
	a, ok := c.calls[token]
	if !ok {
		for expected, other := range c.calls {
			if err == nil && other.id == response.ID {
				c.fail(
					"response-topic", payload,
					"the response to %s came on .../response/%s, want .../response/%s",
					other.method, bounded(token, 40), expected,
				)
				a, token, ok = other, expected, true
				break
			}
		}
		if !ok {
			return // late, or a second one
		}
	}
	delete(c.calls, token)
	a.done, a.payload = true, payload
	switch {
	case err != nil:
		c.fail("response-form", payload, "the response to %s: %v", a.method, err)
		return
	case response.ID != a.id:
		c.fail("response-form", payload, "the response to %s has id %q, want %q", a.method,
			bounded(response.ID, 40), a.id)
	}
	c.pass("response-topic", "response-form")
	a.result, a.err = response.Result, response.Error
}

// wantError decides a line by a call that must be answered with one of some errors.
func (s *script) wantError(id string, a *call, types ...string) bool {
	if slices.Contains(types, a.err.Type) {
		return true
	}
	if a.err.Type == protocol.ErrorHubUnavailable {
		s.hint(id, "%s", s.notReady())
		return false
	}
	s.fail(id, a.payload, "%s, want the error %s", a.text(), types[0])
	return false
}

// wantResult decides a line by a call that must be answered with a result that parse accepts.
func (s *script) wantResult(id string, a *call, parse func(result []byte) error) bool {
	switch {
	case a.err.Type == protocol.ErrorHubUnavailable:
		s.hint(id, "%s", s.notReady())
		return false
	case a.err.Type == protocol.ErrorCommandRefused:
		s.hint(id, "%s; select another device, which the hub drives", a.text())
		return false
	case a.result == nil:
		s.fail(id, a.payload, "%s, want a result", a.text())
		return false
	}
	if err := parse(a.result); err != nil {
		s.fail(id, a.payload, "the result of %s: %v", a.method, err)
		return false
	}
	return true
}
