# For those who build images this way. What a version's image is made by is `cargo xtask dist`, which needs no daemon.
FROM rust:1.95-bookworm AS build
WORKDIR /lastsyn
COPY . .
RUN RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --package lastsyn --bin lastsyn \
        --target "$(rustc -vV | sed -n 's/^host: //p')" \
    && install -D "target/$(rustc -vV | sed -n 's/^host: //p')/release/lastsyn" /root-of-the-image/usr/bin/lastsyn \
    && install -d -m 1777 /root-of-the-image/run/lastsyn

FROM scratch
COPY --from=build /root-of-the-image /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER 65532:65532
ENTRYPOINT ["lastsyn"]
CMD ["run"]
