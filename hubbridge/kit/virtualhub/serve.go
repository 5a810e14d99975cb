package virtualhub

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
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

// ServeConfig names the hubs that Serve offers. Hubs is required.
type ServeConfig struct {
	// Hubs are the hubs of the process.
	Hubs []Served
	// Folder is where the process names itself. Defaults to UserFolder.
	Folder string
	// DataDir is the data directory of the process, by which a caller can select it; "" for none.
	DataDir string
}

// Served is a virtual hub with its name, which may be empty.
type Served struct {
	*Hub
	Name string
}

// Info describes a running hub.
type Info struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// DataDir is the data directory of its process; "" if the process has none.
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

// Serve lets other processes of the same user make the hubs misbehave until ctx ends, and then
// returns nil. It listens on a port of the loopback interface and writes a file with the address, a
// secret and the process id into a folder of the user's. The file is readable by its owner only and
// is removed when Serve returns.
func Serve(ctx context.Context, cfg ServeConfig) error {
	folder := cfg.Folder
	if folder == "" {
		var err error
		if folder, err = UserFolder(); err != nil {
			return err
		}
	}
	e := entry{Token: rand.Text(), PID: os.Getpid()}
	if cfg.DataDir != "" {
		var err error
		if e.Folder, err = filepath.Abs(cfg.DataDir); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.Address = listener.Addr().String()
	path, err := e.write(folder)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s := &server{hubs: cfg.Hubs, entry: e}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hubs", s.list)
	mux.HandleFunc("POST /hubs/{hub}", s.do)
	httpServer := &http.Server{Handler: s.authenticated(mux), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = httpServer.Close() })
	defer stop()
	err = httpServer.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, os.Remove(path))
}

type server struct {
	hubs  []Served
	entry entry
}

// authenticated answers requests without the secret with 401.
func (s *server) authenticated(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.entry.Token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) list(w http.ResponseWriter, _ *http.Request) {
	infos := []Info{}
	for _, h := range s.hubs {
		status := h.Status()
		info := Info{
			ID: h.ID(), Name: h.Name, DataDir: s.entry.Folder, PID: s.entry.PID,
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
