package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
)

// runRole is the main function of a bare server's process. It starts the server, prints its
// addresses, and serves commands until the end of its standard input.
func runRole(role string) error {
	control := http.NewServeMux()
	control.HandleFunc("/debug/pprof/", pprof.Index)
	control.HandleFunc("/debug/pprof/profile", pprof.Profile)
	config := []byte(os.Getenv(configVariable))
	var ready bareReady
	var err error
	switch role {
	case roleBroker:
		ready, err = runBareBroker(config, control)
	case roleWeb:
		ready, err = runBareWeb()
	case roleBurner:
		err = burn(config)
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ready.Control = listener.Addr().String()
	go http.Serve(listener, control)
	line, err := json.Marshal(ready)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// command registers a command of a bare server: JSON in, JSON out.
func command[In, Out any](mux *http.ServeMux, path string, run func(In) (Out, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := run(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(out)
	})
}
