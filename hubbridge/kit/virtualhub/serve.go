package virtualhub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// maxActionBytes bounds an action.
const maxActionBytes = 256 << 10

// Served is a virtual hub with its name, which may be empty.
type Served struct {
	*Hub
	Name string
}

// Info describes a running hub.
type Info struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// DataDir is the absolute path of its process's data directory; "" if the process has none.
	DataDir string `json:"data_dir"`
	PID     int    `json:"pid"`
	// Connected is true while the cloud acknowledges the hub's events.
	Connected bool `json:"connected"`
	// Newest is the number of the hub's newest event, Acked the number through which the cloud has
	// stored them.
	Newest  uint64       `json:"newest"`
	Acked   uint64       `json:"acked"`
	Faults  Faults       `json:"faults"`
	Devices []DeviceInfo `json:"devices"`
}

// DeviceInfo describes a device of a hub.
type DeviceInfo struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Available is false while the radio cannot reach the device.
	Available bool     `json:"available"`
	Channels  []string `json:"channels"` // the key, or KEY/ENDPOINT
}

// folder returns the folder of the sockets on which the user's processes serve their hubs.
func folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "hubcloud", "virtualhubs"), nil
}

// socketEnding ends the names of the sockets.
const socketEnding = ".sock"

// Serve lets other processes of the same user make the hubs misbehave until ctx ends, and then
// returns nil. It listens on a socket in a folder that only the user may enter. dataDir is the data
// directory of the process, by which a caller can select it; "" for none.
func Serve(ctx context.Context, hubs []Served, dataDir string) error {
	s := &server{hubs: hubs}
	if dataDir != "" {
		var err error
		if s.dataDir, err = filepath.Abs(dataDir); err != nil {
			return err
		}
	}
	listener, path, err := listen()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hubs", s.list)
	mux.HandleFunc("POST /hubs/{hub}", s.do)
	httpServer := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = httpServer.Close() })
	defer stop()
	err = httpServer.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, os.Remove(path))
}

// listen listens on a new socket and returns its path. The socket gets its name once connections
// are accepted: Find removes sockets that accept none.
func listen() (listener *net.UnixListener, path string, err error) {
	in, err := folder()
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(in, 0o700); err != nil {
		return nil, "", err
	}
	name := filepath.Join(in, rand.Text()[:8]) // short: the path of a socket has about 100 bytes
	listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, "", err
	}
	listener.SetUnlinkOnClose(false)
	path = name + socketEnding
	if err := errors.Join(os.Chmod(name, 0o600), os.Rename(name, path)); err != nil {
		return nil, "", errors.Join(err, listener.Close(), os.Remove(name))
	}
	return listener, path, nil
}

type server struct {
	hubs    []Served
	dataDir string
}

func (s *server) list(w http.ResponseWriter, _ *http.Request) {
	infos := []Info{}
	for _, h := range s.hubs {
		status := h.Status()
		info := Info{
			ID: h.ID(), Name: h.Name, DataDir: s.dataDir, PID: os.Getpid(),
			Connected: status.Connected, Newest: status.Newest, Acked: status.Acked,
			Faults: h.Faults(), Devices: []DeviceInfo{},
		}
		for _, id := range h.DeviceIDs() {
			d, _ := h.Device(id)
			device := DeviceInfo{ID: id, Name: d.Name, Channels: []string{}}
			for _, c := range d.Channels {
				device.Available = c.Available
				name := c.Key
				if c.Endpoint != 0 {
					name = fmt.Sprintf("%s/%d", c.Key, c.Endpoint)
				}
				device.Channels = append(device.Channels, name)
			}
			info.Devices = append(info.Devices, device)
		}
		infos = append(infos, info)
	}
	respond(w, http.StatusOK, infos)
}

// result is the answer to an action: what the hub did, or what is wrong with the action.
type result struct {
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (s *server) do(w http.ResponseWriter, r *http.Request) {
	var a Action
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxActionBytes)).Decode(&a)
	if err != nil {
		respond(w, http.StatusBadRequest, result{Error: err.Error()})
		return
	}
	for _, h := range s.hubs {
		if h.ID() != r.PathValue("hub") {
			continue
		}
		message, err := a.run(r.Context(), h.Hub)
		if err != nil {
			respond(w, http.StatusBadRequest, result{Error: err.Error()})
			return
		}
		respond(w, http.StatusOK, result{Message: message})
		return
	}
	respond(w, http.StatusNotFound, result{Error: "no such hub"})
}

// respond writes a value as JSON. The caller may have gone away, which is no failure here.
func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
