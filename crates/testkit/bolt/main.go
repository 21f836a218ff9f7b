// Writes a bbolt file from a list of instructions, one JSON array on each line of standard input:
// the path of buckets, then the key and the value, all in base64. A line without key and value
// makes an empty bucket. Usage: writer FILE
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"log"
	"os"

	bolt "go.etcd.io/bbolt"
)

func bytesOf(text string) []byte {
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		log.Fatal(err)
	}
	return bytes
}

type line struct {
	Path  []string `json:"path"`
	Key   *string  `json:"key"`
	Value string   `json:"value"`
}

func write(tx *bolt.Tx, l line) error {
	bucket, err := tx.CreateBucketIfNotExists(bytesOf(l.Path[0]))
	for _, name := range l.Path[1:] {
		if err != nil {
			return err
		}
		bucket, err = bucket.CreateBucketIfNotExists(bytesOf(name))
	}
	if err != nil || l.Key == nil {
		return err
	}
	return bucket.Put(bytesOf(*l.Key), bytesOf(l.Value))
}

func main() {
	db, err := bolt.Open(os.Args[1], 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		log.Fatal(err)
	}
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder := json.NewDecoder(input)
	for decoder.More() {
		// A few thousand writes in a transaction, so that trees grow by splitting, too.
		err := db.Update(func(tx *bolt.Tx) error {
			for count := 0; count < 5000 && decoder.More(); count++ {
				var l line
				if err := decoder.Decode(&l); err != nil {
					return err
				}
				if err := write(tx, l); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
}
