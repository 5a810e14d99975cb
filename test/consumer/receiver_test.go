package consumer

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/httpapi/client"
	"hubcloud/streams/streamstest"
)

// The receiver of `hubcloud forward` runs as a process of its own, so that it can be killed: this
// test binary, with these environment variables.
const (
	// receiverFile is the file that the receiver writes what it takes to, and also makes this
	// binary a receiver.
	receiverFile = "HUBCLOUD_TEST_RECEIVER_FILE"
	// receiverAddress is where it listens.
	receiverAddress = "HUBCLOUD_TEST_RECEIVER_ADDRESS"
)

// The secrets of the receiver: it accepts signatures of the second.
const (
	otherSecret    = "whsec_b3RoZXIgc2VjcmV0IG9mIDMyIGJ5dGVzLCBub3QgaXQ="
	receiverSecret = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdGVzdCdzIHJlY2VpdmVy"
)

// taken is a line of the receiver's file: an event, with the path and id of its request.
type taken struct {
	Path, ID, Hub, Cursor string
	Scene                 int
}

// receive is the receiver: it syncs each request's events to the file before it answers 200.
// Requests with a wrong signature get 401 and leave a line that no test accepts.
func receive(path, address string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	panic(http.ListenAndServe(address, http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			id := r.Header.Get("Webhook-Id")
			events, err := posted(body)
			if !signed(r.Header, body) {
				err = fmt.Errorf("wrong signature of %s", id)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				fmt.Fprintf(file, "%v\n", err)
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
			for _, event := range events {
				line, err := json.Marshal(taken{
					r.URL.Path, id, event.HubID, event.Cursor, sceneOf(event),
				})
				if err == nil {
					_, err = file.Write(append(line, '\n'))
				}
				if err != nil {
					panic(err)
				}
			}
			if err := file.Sync(); err != nil {
				panic(err)
			}
		},
	)))
}

// posted returns the events of a request's body.
func posted(body []byte) ([]client.Event, error) {
	var batch struct{ Data []client.Event }
	if err := json.Unmarshal(body, &batch); err == nil && len(batch.Data) > 0 {
		return batch.Data, nil
	}
	var one client.Event
	err := json.Unmarshal(body, &one)
	return []client.Event{one}, err
}

// signed checks a request as the specification of Standard Webhooks says.
func signed(header http.Header, body []byte) bool {
	at, err := strconv.ParseInt(header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(receiverSecret, "whsec_"))
	if err != nil {
		return false
	}
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s.%d.%s", header.Get("Webhook-Id"), at, body)
	want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	for signature := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return true
		}
	}
	return false
}

// sceneOf returns the number of a scene event, and 0 for other events.
func sceneOf(event client.Event) int {
	var data struct{ Value client.Scene }
	if event.Type != client.EventChannelObserved || event.Decode(&data) != nil {
		return 0
	}
	return data.Value.Scene
}

// process is a program that is started again and again.
type process struct {
	t    *testing.T
	make func() *exec.Cmd
	cmd  *exec.Cmd
	log  strings.Builder
}

// begin starts the program.
func (p *process) begin() {
	p.t.Helper()
	p.cmd = p.make()
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the program with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	_ = p.cmd.Wait()         // killed
}

// processOf starts a program that the end of the test kills.
func processOf(t *testing.T, makeCommand func() *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, make: makeCommand}
	p.begin()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%v printed\n%s", p.cmd.Args, p.log.String())
		}
	})
	return p
}

// receiver is a running receiver.
type receiver struct {
	*process
	address, file string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{address: streamstest.FreeAddress(t), file: t.TempDir() + "/taken"}
	r.process = processOf(t, func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), receiverFile+"="+r.file, receiverAddress+"="+r.address)
		return cmd
	})
	return r
}

// taken returns what has been posted to a path, in order.
func (r *receiver) taken(path string) []taken {
	r.t.Helper()
	file, err := os.Open(r.file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	var all []taken
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// A kill may have cut a line off, to which the next one was appended.
		line := lines.Bytes()[max(0, bytes.LastIndex(lines.Bytes(), []byte(`{"Path"`))):]
		var one taken
		if err := json.Unmarshal(line, &one); err != nil && !lines.Scan() {
			break // the line that is being written
		} else if err != nil {
			r.t.Fatalf("the receiver wrote %q", line)
		}
		if one.Path == path {
			all = append(all, one)
		}
	}
	return all
}

// await waits until the scene with a number of each hub has been posted to a path.
func (r *receiver) await(path string, scene int, hubs ...string) {
	r.t.Helper()
	streamstest.EventuallyWithin(r.t, 2*time.Minute, fmt.Sprintf("scene %d at %s", scene, path),
		func() bool {
			missing := map[string]bool{}
			for _, hub := range hubs {
				missing[hub] = true
			}
			for _, one := range r.taken(path) {
				if one.Scene == scene {
					delete(missing, one.Hub)
				}
			}
			return len(missing) == 0
		})
}
