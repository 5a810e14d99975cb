package virtualhub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// requestTimeout bounds a request to a process of the same machine.
const requestTimeout = 15 * time.Second

// Process is a process that serves virtual hubs.
type Process struct {
	socket string // its path
	// Hubs describes its hubs at the time of Find.
	Hubs []Info
}

// ActionError is what is wrong with an action.
type ActionError struct{ Message string }

func (e *ActionError) Error() string { return e.Message }

// Find returns the processes of the user that serve hubs and answer, with their hubs. It removes
// the sockets of processes that were killed.
func Find(ctx context.Context) ([]Process, error) {
	in, err := folder()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(in, "*"+socketEnding))
	if err != nil {
		return nil, err
	}
	var processes []Process
	for _, path := range paths {
		p := Process{socket: path}
		err := p.request(ctx, http.MethodGet, "/hubs", nil, &p.Hubs)
		if errors.Is(err, syscall.ECONNREFUSED) { // the process was killed
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			continue
		}
		if err == nil {
			processes = append(processes, p)
		}
	}
	return processes, nil
}

// Do runs an action on the hub with the given id and returns what the hub did, in one sentence.
func (p Process) Do(ctx context.Context, hubID string, a Action) (message string, err error) {
	body, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	var r result
	err = p.request(ctx, http.MethodPost, "/hubs/"+url.PathEscape(hubID), body, &r)
	return r.Message, err
}

// request sends a request and decodes the response into out.
func (p Process) request(ctx context.Context, method, path string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://hubs"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.socket)
		},
	}}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return json.NewDecoder(response.Body).Decode(out)
	}
	var failed result
	if json.NewDecoder(response.Body).Decode(&failed) != nil || failed.Error == "" {
		return fmt.Errorf("the process of %s answered %s", p.socket, response.Status)
	}
	return &ActionError{failed.Error}
}
