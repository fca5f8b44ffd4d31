# The CPU program alone, about 0.5 GB. In the repository:
#   docker build -f scripts/docker/cpu.Dockerfile -t lamplighter .
#   docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" lamplighter generate -p "a red boat on the sea" -o boat.png
#   docker run --rm -p 8080:8080 -v "$PWD/key.txt:/key.txt:ro" lamplighter serve --host 0.0.0.0 --api-key /key.txt
FROM debian:12-slim AS build
WORKDIR /src
COPY . .
RUN LAMPLIGHTER_CUDA=OFF scripts/package.sh folder /opt/lamplighter

FROM debian:12-slim
COPY --from=build /opt/lamplighter /opt/lamplighter
ENV PATH=/opt/lamplighter/bin:$PATH
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["lamplighter"]
CMD ["--help"]
